"""Private modules that all packages use: checks of arguments, spaces, nested arrays, logging."""
