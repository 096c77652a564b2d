"""What `apply` says before it changes anything, and how many objects go out as one."""
