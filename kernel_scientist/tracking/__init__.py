"""MLflow: kernel runs, campaign runs, traces of model calls."""
