// What is not simulated: a call of it is refused, with the reason. Other functions of HIP that are not in this library
// are missed when the submission's code is loaded (`module.py`). HIP's headers would insist on the true parameters.

namespace stand_in {
void refused_call(const char* function, const char* reason);
}

#define REFUSED(function, reason)                                                    \
    extern "C" __attribute__((visibility("default"))) int function() {               \
        stand_in::refused_call(#function, reason);                                   \
        return 801; /* hipErrorNotSupported; of hiprtc, an error that it has not */  \
    }

#define GRAPH(function) REFUSED(function, "graphs are not simulated: launch the kernels themselves")
GRAPH(hipStreamBeginCapture)
GRAPH(hipStreamEndCapture)
GRAPH(hipStreamGetCaptureInfo)
GRAPH(hipGraphCreate)
GRAPH(hipGraphAddKernelNode)
GRAPH(hipGraphAddMemcpyNode)
GRAPH(hipGraphAddMemsetNode)
GRAPH(hipGraphInstantiate)
GRAPH(hipGraphInstantiateWithFlags)
GRAPH(hipGraphLaunch)
GRAPH(hipGraphExecUpdate)
GRAPH(hipGraphExecDestroy)
GRAPH(hipGraphDestroy)

#define SEVERAL(function) REFUSED(function, "one GPU is simulated, and this is for several")
SEVERAL(hipDeviceEnablePeerAccess)
SEVERAL(hipDeviceDisablePeerAccess)
SEVERAL(hipLaunchCooperativeKernelMultiDevice)
SEVERAL(hipExtLaunchMultiKernelMultiDevice)
SEVERAL(hipMemcpyPeer)
SEVERAL(hipMemcpyPeerAsync)
SEVERAL(hipIpcGetMemHandle)
SEVERAL(hipIpcOpenMemHandle)
SEVERAL(hipIpcCloseMemHandle)
SEVERAL(hipIpcGetEventHandle)
SEVERAL(hipIpcOpenEventHandle)

#define COMPILES(function) REFUSED(function, "code that is compiled at run time is not simulated: use load_inline")
COMPILES(hiprtcCreateProgram)
COMPILES(hiprtcCompileProgram)
COMPILES(hiprtcDestroyProgram)
COMPILES(hiprtcAddNameExpression)
COMPILES(hiprtcGetLoweredName)
COMPILES(hiprtcGetCode)
COMPILES(hiprtcGetCodeSize)
COMPILES(hiprtcGetProgramLog)
COMPILES(hiprtcGetProgramLogSize)
COMPILES(hiprtcGetErrorString)
