"""The command line: options, arguments, files in, text out; `commands/` has one file per group."""
