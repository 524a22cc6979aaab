package nvml

// OpenFrom opens the first of these libraries that opens.
func OpenFrom(names ...string) (*Library, error) { return openFirst(names) }
