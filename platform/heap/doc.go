// Package heap gives memory that nobody uses back to the system: what the C
// library keeps for later after a model was optimised and loaded is half of what an
// idle appliance would take.
package heap
