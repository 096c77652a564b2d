"""The bus in memory, under the same contract tests as the real one."""
