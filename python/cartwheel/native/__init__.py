"""Native environments: a vector environment of them, one of them, and how they are rendered."""
