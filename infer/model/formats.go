package model

import (
	"bytes"
	"unicode/utf8"
)

// otherFormat names what else people hand over as a model, and what to use instead.
func otherFormat(head []byte) (what, instead string) {
	at := func(i int, s string) bool { return len(head) >= i+len(s) && string(head[i:i+len(s)]) == s }
	for _, f := range []struct {
		at            int
		magic         string
		what, instead string
	}{
		{0, "PK\x03\x04", "a ZIP archive", "unpack it; a PyTorch .pt file is one too: export it to ONNX"},
		{0, "\x80\x02", "a Python pickle", "an old PyTorch file: export it to ONNX"},
		{0, "\x80\x03", "a Python pickle", "an old PyTorch file: export it to ONNX"},
		{0, "\x80\x04", "a Python pickle", "an old PyTorch file: export it to ONNX"},
		{0, "\x80\x05", "a Python pickle", "an old PyTorch file: export it to ONNX"},
		{0, "version https://git-lfs", "a Git LFS pointer", "the file itself was not downloaded (git lfs pull)"},
		{4, "TFL3", "a TensorFlow Lite model", ""},
		{4, "ORTM", "a model in ONNX Runtime's own format", "use the .onnx file that it was made from"},
		{0, "ftrt", "a TensorRT engine", "it fits one GPU and one version; use the .onnx file that it was made from"},
		{0, "ptrt", "a TensorRT engine", "it fits one GPU and one version; use the .onnx file that it was made from"},
		{8, "{\"", "a safetensors file", "it holds weights without a network: export it to ONNX"},
		{0, "\x89HDF", "an HDF5 file (Keras)", "export it to ONNX"},
		{0, "\x93NUMPY", "a NumPy array", ""},
		{0, "\x1f\x8b", "a compressed file", "unpack it first"},
		{0, "BZh", "a compressed file", "unpack it first"},
		{0, "\xfd7zXZ", "a compressed file", "unpack it first"},
		{0, "\x28\xb5\x2f\xfd", "a compressed file", "unpack it first"},
		{0, "7z\xbc\xaf", "a compressed file", "unpack it first"},
		{0, "Rar!", "a compressed file", "unpack it first"},
		{257, "ustar", "a tar archive", "unpack it first"},
		{0, "\x7fELF", "a program or library", ""},
		{0, "MZ", "a program or library", ""},
		{0, "7767517", "an ncnn description", "use the .onnx file that it was made from"},
		{0, "GGUF", "a GGUF model", ""},
		{0, "\xff\xd8\xff", "a JPEG picture", ""},
		{0, "\x89PNG", "a PNG picture", ""},
		{0, "GIF8", "a GIF picture", ""},
		{0, "RIFF", "a RIFF file (WebP, AVI or WAV)", ""},
		{4, "ftyp", "a video (MP4)", ""},
		{0, "%PDF", "a PDF document", ""},
	} {
		if at(f.at, f.magic) {
			return f.what, f.instead
		}
	}
	return textFormat(head)
}

// textFormat names files of text.
func textFormat(head []byte) (what, instead string) {
	text := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))))
	starts := func(s string) bool { return bytes.HasPrefix(text, []byte(s)) }
	switch {
	case starts("<!doctype") || starts("<html"):
		return "a web page", "a download that went wrong"
	case starts("<?xml") || starts("<net"):
		return "XML", "of OpenVINO's two files neither is ONNX: use the .onnx file that they were made from"
	case !plainText(head):
		return "", ""
	case starts("{") || starts("["):
		if starts("[net]") {
			return "a Darknet configuration", "export it with its weights to ONNX"
		}
		return "JSON", ""
	}
	return "a file of text", ""
}

// plainText tells whether all of it is written text, which a protobuf message with its lengths and numbers is not.
func plainText(head []byte) bool {
	if len(head) == 512 { // the last character may be cut
		for i := 0; i < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); i++ {
			head = head[:len(head)-1]
		}
	}
	if !utf8.Valid(head) {
		return false
	}
	return !bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f })
}
