// Package nvml asks NVIDIA's management library how busy a card is: its
// processors, its video decoders, its memory and its link. The library comes with
// the driver and is opened at run time; Jetsons and containers without it have
// none, and everything that it tells is for people to read, so that nothing
// depends on it.
package nvml
