// Package model says what an ONNX file is: its family, what goes in, how what comes out is to be read, and
// its labels, each with the evidence. It reads the file and runs nothing.
package model
