package onnxruntime

// function is an index into the OrtApi table. The table only grows, so an
// index holds from the version that brought the function on. Those below
// tableSize17 are in version 1.17, the oldest that is accepted, the others in
// 1.22.
type function int

const (
	fnGetErrorCode                           function = 1
	fnGetErrorMessage                        function = 2
	fnCreateEnv                              function = 3
	fnCreateSession                          function = 7
	fnCreateSessionFromArray                 function = 8
	fnCreateSessionOptions                   function = 10
	fnEnableProfiling                        function = 14
	fnSetSessionLogSeverityLevel             function = 22
	fnSetSessionGraphOptimizationLevel       function = 23
	fnSetIntraOpNumThreads                   function = 24
	fnSetInterOpNumThreads                   function = 25
	fnSessionGetInputCount                   function = 30
	fnSessionGetOutputCount                  function = 31
	fnSessionGetInputTypeInfo                function = 33
	fnSessionGetOutputTypeInfo               function = 34
	fnSessionGetInputName                    function = 36
	fnSessionGetOutputName                   function = 37
	fnCreateRunOptions                       function = 39
	fnCreateTensorAsOrtValue                 function = 48
	fnCreateTensorWithDataAsOrtValue         function = 49
	fnGetTensorMutableData                   function = 51
	fnCastTypeInfoToTensorInfo               function = 55
	fnGetTensorElementType                   function = 60
	fnGetDimensionsCount                     function = 61
	fnGetDimensions                          function = 62
	fnGetTensorTypeAndShape                  function = 65
	fnCreateMemoryInfo                       function = 68
	fnCreateCpuMemoryInfo                    function = 69
	fnAllocatorFree                          function = 76
	fnGetAllocatorWithDefaultOptions         function = 78
	fnReleaseEnv                             function = 92
	fnReleaseStatus                          function = 93
	fnReleaseMemoryInfo                      function = 94
	fnReleaseSession                         function = 95
	fnReleaseValue                           function = 96
	fnReleaseRunOptions                      function = 97
	fnReleaseTypeInfo                        function = 98
	fnReleaseTensorTypeAndShapeInfo          function = 99
	fnReleaseSessionOptions                  function = 100
	fnSessionEndProfiling                    function = 110
	fnSessionGetModelMetadata                function = 111
	fnModelMetadataLookupCustomMetadata      function = 116
	fnReleaseModelMetadata                   function = 118
	fnModelMetadataGetCustomMetadataKey      function = 123
	fnGetAvailableProviders                  function = 125
	fnReleaseAvailableProviders              function = 126
	fnAddSessionConfigEntry                  function = 130
	fnRunWithBinding                         function = 133
	fnCreateIoBinding                        function = 134
	fnReleaseIoBinding                       function = 135
	fnBindInput                              function = 136
	fnBindOutput                             function = 137
	fnBindOutputToDevice                     function = 138
	fnGetBoundOutputValues                   function = 140
	fnAddRunConfigEntry                      function = 165
	fnAppendTensorRT                         function = 170
	fnCreateTensorRTProviderOptions          function = 171
	fnUpdateTensorRTProviderOptions          function = 172
	fnReleaseTensorRTProviderOptions         function = 174
	fnAppendCUDA                             function = 204
	fnCreateCUDAProviderOptions              function = 205
	fnUpdateCUDAProviderOptions              function = 206
	fnReleaseCUDAProviderOptions             function = 208
	fnUpdateTensorRTProviderOptionsWithValue function = 261
	fnUpdateCUDAProviderOptionsWithValue     function = 263
	fnGetKeyValue                            function = 297
	fnRegisterExecutionProviderLibrary       function = 301
	fnUnregisterExecutionProviderLibrary     function = 302
	fnGetEpDevices                           function = 303
	fnAppendExecutionProviderV2              function = 304
	fnHardwareDeviceType                     function = 307
	fnHardwareDeviceMetadata                 function = 311
	fnEpDeviceEpName                         function = 312
	fnEpDeviceEpMetadata                     function = 314
	fnEpDeviceEpOptions                      function = 315
	fnEpDeviceDevice                         function = 316
)

// The parts of the table that are read: an older library's table ends earlier.
const (
	tableSize17 = fnUpdateCUDAProviderOptionsWithValue + 1
	tableSize22 = fnEpDeviceDevice + 1

	// pluginAPI is the version that brought provider libraries.
	pluginAPI = 22
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
	case fnBindOutput, fnBindOutputToDevice:
		return "BindOutput"
	case fnGetBoundOutputValues:
		return "GetBoundOutputValues"
	case fnAddSessionConfigEntry:
		return "AddSessionConfigEntry"
	case fnAppendCUDA:
		return "SessionOptionsAppendExecutionProvider_CUDA_V2"
	case fnCreateCUDAProviderOptions, fnUpdateCUDAProviderOptions, fnUpdateCUDAProviderOptionsWithValue:
		return "UpdateCUDAProviderOptions"
	case fnAppendTensorRT:
		return "SessionOptionsAppendExecutionProvider_TensorRT_V2"
	case fnCreateTensorRTProviderOptions, fnUpdateTensorRTProviderOptions, fnUpdateTensorRTProviderOptionsWithValue:
		return "UpdateTensorRTProviderOptions"
	case fnRegisterExecutionProviderLibrary:
		return "RegisterExecutionProviderLibrary"
	case fnAppendExecutionProviderV2:
		return "SessionOptionsAppendExecutionProvider_V2"
	}
	return "call"
}
