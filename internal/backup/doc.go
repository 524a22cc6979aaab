// Package backup reads and writes the archives of `edgecam backup`: a tar.gz whose
// first entry, manifest.json, lists all others with size and checksum.
//
// An archive may come from anywhere. Read takes nothing from it but regular files
// that the manifest names, in its order, and says where they belong only in terms
// of a Base; the caller decides which places those are.
package backup
