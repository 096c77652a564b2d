"""One file to install Leafcast from where there is no network: made, and verified."""
