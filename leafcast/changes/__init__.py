"""What a person changes at the centre: a batch is completed, judged whole, kept, and written."""
