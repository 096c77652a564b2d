"""What `leafcast doctor` judges: facts in, checks out, each failure with its remedy."""
