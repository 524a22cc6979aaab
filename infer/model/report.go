package model

import "edgecam/infer"

// The families. A family is a name for what follows from it where the file does not say: how pixels
// go in and how the outputs are read.
const (
	NanoDet        = "nanodet"
	YOLOX          = "yolox"
	YOLOv5         = "yolov5"
	YOLOv6         = "yolov6"
	YOLOv7         = "yolov7"
	YOLOv8         = "yolov8"  // also 9, 11 and 12
	YOLOv10        = "yolov10" // and all others whose rows are finished detections
	YOLONAS        = "yolo-nas"
	RTDETR         = "rt-detr"
	DFINE          = "d-fine"
	RFDETR         = "rf-detr"
	SSDTensorFlow  = "ssd-tf"
	SSDTorchvision = "ssd-torchvision"
	SSDPriors      = "ssd-priors" // boxes and scores of every prior, background first
	EfficientNMS   = "efficientnms"
	ONNXNMS        = "onnx-nms"
	BoxesScores    = "boxes-scores" // ours: everything stands in the metadata
	FastestDet     = "fastestdet"
)

// Certainty says what a conclusion rests on.
type Certainty string

// The certainties, the strongest first.
const (
	FromConfig Certainty = "config"     // the configuration says so
	Stated     Certainty = "stated"     // the file's metadata say so
	FromShape  Certainty = "shape"      // the graph or its shapes leave no other way
	Convention Certainty = "convention" // models of the family are made so
)

// Finding is one conclusion.
type Finding struct {
	About     string    `json:"about"` // family, color, …
	Value     string    `json:"value"`
	Evidence  string    `json:"evidence"`
	Certainty Certainty `json:"certainty"`
}

// Question is what the file does not tell and no convention settles.
type Question struct {
	Key          string   `json:"key"` // of the configuration: inference.model.family
	Why          string   `json:"why"`
	Alternatives []string `json:"alternatives,omitempty"`
}

// Report is everything that is known of a model file.
type Report struct {
	File       string            `json:"file"`
	Bytes      int64             `json:"bytes"` // with external data
	SHA256     string            `json:"sha256"`
	IR         int               `json:"ir"`
	Opset      int               `json:"opset"`
	Producer   string            `json:"producer"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	External   []string          `json:"external_data,omitempty"` // files beside it that hold weights
	Spec       Spec              `json:"spec"`
	Findings   []Finding         `json:"findings"`
	Notes      []string          `json:"notes,omitempty"`
	Ask        []Question        `json:"ask,omitempty"`
	Refusal    string            `json:"refusal,omitempty"` // why it cannot be used
	Params     int64             `json:"params"`
	GFLOPs     float64           `json:"gflops"` // of one image; 0: not known, a note says why
	Providers  []string          `json:"providers,omitempty"`
	MSPerImage float64           `json:"ms_per_image,omitempty"`

	// Weights changes with the files of External; their content is too much to read for that.
	Weights string `json:"-"`

	plugins bool // of TensorRT
}

// Spec is what engines and decoders need of a model.
type Spec struct {
	Family  string       `json:"family"`
	Task    string       `json:"task"`
	Input   Input        `json:"input"`
	Outputs []Output     `json:"outputs"` // all of the session's, in its order
	Decode  infer.Layout `json:"decode"`
	Labels  []string     `json:"labels"`
	NMS     NMS          `json:"nms"`
}

// Input is the tensor of pictures. Width and Height are what will be fed, also where the file leaves them free.
type Input struct {
	Name   string `json:"name"`
	Type   string `json:"type"`   // float32, float16, uint8
	Layout string `json:"layout"` // NCHW, NHWC; CHW, HWC where there is no batch
	// Batch is the fixed number of images of a run; 0: free.
	Batch int `json:"batch"`
	// Shape is what the file declares; −1: free.
	Shape []int `json:"shape"`
	// DynamicSize: the file leaves width or height free.
	DynamicSize bool `json:"dynamic_size"`
	infer.InputSpec
	// Sizes, where the graph has a second input that asks for the pictures' sizes, is that input: it is fed the
	// input's own size, so that boxes come out in input pixels.
	Sizes *SizesInput `json:"sizes,omitempty"`
}

// SizesInput is an input of [batch,2] sizes, width first but where HeightFirst.
type SizesInput struct {
	Name        string `json:"name"`
	Type        string `json:"type"` // int64, int32, float32
	HeightFirst bool   `json:"height_first"`
}

// Output is one of the session's outputs.
type Output struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"` // −1: free
	Role  string `json:"role"`  // boxes, scores, …; ignored
}

// NMS says what becomes of overlapping boxes.
type NMS struct {
	// Inside: the graph suppresses, or gives each object once.
	Inside bool `json:"inside"`
	// IoU above which a box is dropped; 0: the default.
	IoU float32 `json:"iou,omitempty"`
	// ClassAgnostic: boxes of other classes suppress too.
	ClassAgnostic bool `json:"class_agnostic,omitempty"`
}

// Overrides is what a configuration says of a model. Zero values leave it to the file.
type Overrides struct {
	Family    string
	Width     int
	Height    int
	Layout    string // NCHW, NHWC
	Color     string // RGB, BGR
	Mean, Std *[3]float32
	Scale     *float32 // factor on the samples 0..255 before Mean and Std
	Letterbox string   // center, top_left
	// Labels, or a file of them. Both is an error.
	Labels        []string
	LabelsFile    string
	IoU           float32
	ClassAgnostic bool
}

// OnlyTensorRT tells of a graph that holds TensorRT's plugins, which no other provider runs.
func (r *Report) OnlyTensorRT() bool { return r.plugins }
