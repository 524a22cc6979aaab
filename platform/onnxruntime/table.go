package onnxruntime

// function is an index into the OrtApi table. The table only grows, so an
// index holds from the version that brought the function on; all of these are
// older than version 1.17, the oldest that is accepted.
type function int

const (
	fnGetErrorCode                      function = 1
	fnGetErrorMessage                   function = 2
	fnCreateEnv                         function = 3
	fnCreateSession                     function = 7
	fnCreateSessionFromArray            function = 8
	fnCreateSessionOptions              function = 10
	fnSetSessionLogSeverityLevel        function = 22
	fnSetSessionGraphOptimizationLevel  function = 23
	fnSetIntraOpNumThreads              function = 24
	fnSetInterOpNumThreads              function = 25
	fnSessionGetInputCount              function = 30
	fnSessionGetOutputCount             function = 31
	fnSessionGetInputTypeInfo           function = 33
	fnSessionGetOutputTypeInfo          function = 34
	fnSessionGetInputName               function = 36
	fnSessionGetOutputName              function = 37
	fnCreateTensorAsOrtValue            function = 48
	fnCreateTensorWithDataAsOrtValue    function = 49
	fnGetTensorMutableData              function = 51
	fnCastTypeInfoToTensorInfo          function = 55
	fnGetTensorElementType              function = 60
	fnGetDimensionsCount                function = 61
	fnGetDimensions                     function = 62
	fnCreateCpuMemoryInfo               function = 69
	fnAllocatorFree                     function = 76
	fnGetAllocatorWithDefaultOptions    function = 78
	fnReleaseEnv                        function = 92
	fnReleaseStatus                     function = 93
	fnReleaseMemoryInfo                 function = 94
	fnReleaseSession                    function = 95
	fnReleaseValue                      function = 96
	fnReleaseTypeInfo                   function = 98
	fnReleaseSessionOptions             function = 100
	fnSessionGetModelMetadata           function = 111
	fnModelMetadataLookupCustomMetadata function = 116
	fnReleaseModelMetadata              function = 118
	fnModelMetadataGetCustomMetadataKey function = 123
	fnGetAvailableProviders             function = 125
	fnReleaseAvailableProviders         function = 126
	fnAddSessionConfigEntry             function = 130
	fnRunWithBinding                    function = 133
	fnCreateIoBinding                   function = 134
	fnReleaseIoBinding                  function = 135
	fnBindInput                         function = 136
	fnBindOutput                        function = 137
	tableSize                                    = 138
)

// name is the C function, for errors.
func (f function) name() string {
	switch f {
	case fnCreateEnv:
		return "CreateEnv"
	case fnCreateSession:
		return "CreateSession"
	case fnCreateSessionFromArray:
		return "CreateSessionFromArray"
	case fnCreateTensorAsOrtValue, fnCreateTensorWithDataAsOrtValue, fnGetTensorMutableData:
		return "CreateTensor"
	case fnRunWithBinding:
		return "RunWithBinding"
	case fnCreateIoBinding:
		return "CreateIoBinding"
	case fnBindInput:
		return "BindInput"
	case fnBindOutput:
		return "BindOutput"
	case fnAddSessionConfigEntry:
		return "AddSessionConfigEntry"
	}
	return "call"
}
