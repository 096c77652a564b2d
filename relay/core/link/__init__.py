"""The link between a parent and a child: the mailbox from both sides, the session, progress."""
