"""The MLflow store: runs, their content, traces of models' calls."""
