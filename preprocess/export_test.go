package preprocess

// UseTwins makes c work without vectors.
func (c *CPU) UseTwins() { c.vectors = false }
