"""HTML pages, each one self-contained file: of a campaign, of a comparison. They need no JavaScript."""
