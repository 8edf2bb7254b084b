"""Native environments: vector environments, single environments, and their rendering."""
