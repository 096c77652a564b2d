"""The process behind `leafcast up`: it keeps a tree running, and answers by verb."""
