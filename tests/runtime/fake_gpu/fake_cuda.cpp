#include "tests/runtime/fake_gpu/fake_cuda.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace lacuna {
namespace {

FakeCuda& state() {
  static FakeCuda* fake = new FakeCuda;
  return *fake;
}

CUresult note(const char* call, CUresult result = kCudaSuccess) {
  FakeCuda& fake = state();
  const int at = fake.log_count.fetch_add(1);
  if (at < FakeCuda::kLogCapacity) fake.log[at] = call;
  return result;
}

std::vector<CUcontext>& contexts() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

int device_of(CUcontext context) {
  return static_cast<int>(reinterpret_cast<std::size_t>(context) - 0x1000);
}

CUresult init(unsigned) {
  return note("cuInit", state().device_count > 0 ? state().init_result : kCudaErrorNoDevice);
}
CUresult version(int* version) {
  *version = state().cuda_version;
  return note("cuDriverGetVersion");
}
CUresult error_name(CUresult, const char** text) {
  *text = "CUDA_ERROR_FAKE";
  return kCudaSuccess;
}
CUresult error_string(CUresult, const char** text) {
  *text = "as the test asked";
  return kCudaSuccess;
}
CUresult count(int* count) {
  *count = state().device_count;
  return note("cuDeviceGetCount");
}
CUresult device(CUdevice* device, int index) {
  *device = index;
  return note("cuDeviceGet");
}
CUresult name(char* name, int bytes, CUdevice device) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "Fake GPU %d", device);
  return note("cuDeviceGetName");
}
CUresult total_memory(std::size_t* bytes, CUdevice) {
  *bytes = std::size_t{1} << 33;
  return note("cuDeviceTotalMem");
}
CUresult attribute(int* value, int attribute, CUdevice) {
  const int capability = state().compute_capability;
  *value = attribute == kAttributeComputeCapabilityMajor   ? capability / 10
           : attribute == kAttributeComputeCapabilityMinor ? capability % 10
                                                           : 132;
  return note("cuDeviceGetAttribute");
}
CUresult retain(CUcontext* context, CUdevice device) {
  *context = fake_primary(device);
  return note("cuDevicePrimaryCtxRetain");
}
CUresult current(CUcontext* context) {
  *context = contexts().empty() ? nullptr : contexts().back();
  return note("cuCtxGetCurrent");
}
CUresult push(CUcontext context) {
  contexts().push_back(context);
  return note("cuCtxPushCurrent");
}
CUresult pop(CUcontext* context) {
  *context = contexts().back();
  contexts().pop_back();
  return note("cuCtxPopCurrent");
}
CUresult context_device(CUdevice* device) {
  *device = device_of(contexts().back());
  return note("cuCtxGetDevice");
}
CUresult load(CUlibrary* library, const void* code, int*, void**, unsigned, int*, void**,
              unsigned) {
  if (state().loads_to_accept > 0) {
    --state().loads_to_accept;
  } else if (state().loads_to_refuse > 0) {
    --state().loads_to_refuse;
    return note("cuLibraryLoadData", kCudaErrorInvalidImage);
  }
  if (std::memcmp(code,
                  "\x7f"
                  "ELF",
                  4) != 0) {
    return note("cuLibraryLoadData", kCudaErrorInvalidImage);
  }
  *library = reinterpret_cast<CUlibrary>(std::size_t{0x2000});
  return note("cuLibraryLoadData");
}
CUresult unload(CUlibrary) { return note("cuLibraryUnload"); }
CUresult kernel(CUkernel* kernel, CUlibrary, const char* name) {
  FakeCuda& fake = state();
  const int n = fake.kernel_count++;
  std::snprintf(fake.kernels[n], sizeof(fake.kernels[n]), "%s", name);
  *kernel = fake_kernel(n);
  return note("cuLibraryGetKernel");
}
CUresult function(CUfunction* function, CUkernel) {
  *function = reinterpret_cast<CUfunction>(std::size_t{0x4000});
  return note("cuKernelGetFunction");
}
CUresult set_attribute(int, int value, CUkernel, CUdevice device) {
  state().shared_bytes_allowed = value;
  state().attribute_device = device;
  return note("cuKernelSetAttribute");
}
CUresult function_load(CUfunction) { return note("cuFuncLoad"); }
CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
  FakeCuda& fake = state();
  const int n = fake.launch_count.fetch_add(1);
  if (n < FakeCuda::kLogCapacity) {
    fake.launches[n] = function;
    fake.launch_streams[n] = config->stream;
    fake.grids[n] = config->grid_x;
    fake.overlapping[n] = config->attribute_count == 1 &&
                          config->attributes->id == kLaunchProgrammaticStreamSerialization &&
                          config->attributes->allowed == 1;
  }
  // Only the first launch after the log was cleared is kept: several threads may launch at once.
  if (note("cuLaunchKernelEx", fake.launch_result), fake.launched == nullptr) {
    fake.config = *config;
    std::memcpy(fake.arguments, parameters[0], sizeof(fake.arguments));
    fake.launch_context = contexts().empty() ? nullptr : contexts().back();
    fake.launched = function;
  }
  return fake.launch_result;
}
CUresult encode_map(void* map, int, std::uint32_t, void*, const std::uint64_t*,
                    const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int, int,
                    int) {
  *static_cast<unsigned char*>(map) =
      static_cast<unsigned char>(state().map_count.fetch_add(1) + 1);
  // As the real one, which wants a context although it only writes to host memory.
  return note("cuTensorMapEncodeTiled",
              contexts().empty() ? kCudaErrorInvalidContext : state().map_result);
}
CUresult stream_create(CUstream* stream, unsigned) {
  *stream = reinterpret_cast<CUstream>(std::size_t{0x5000});
  return note("cuStreamCreate");
}
CUresult stream_create_with_priority(CUstream* stream, unsigned, int priority) {
  *stream = fake_lane(priority);
  return note("cuStreamCreateWithPriority");
}
CUresult priority_range(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return note("cuCtxGetStreamPriorityRange");
}
CUresult wait_event(CUstream stream, CUevent, unsigned) {
  FakeCuda& fake = state();
  if (const int n = fake.wait_count++; n < FakeCuda::kLogCapacity) fake.waits[n] = stream;
  return note("cuStreamWaitEvent");
}
CUresult stream_call(CUstream) { return note("cuStream"); }
CUresult allocate(CUdeviceptr* address, std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;  // as the real one promises
  const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(kAlignment, whole));
  return note("cuMemAlloc");
}
CUresult release(CUdeviceptr address) {
  std::free(reinterpret_cast<void*>(address));
  return note("cuMemFree");
}
CUresult copy_in(CUdeviceptr target, const void* source, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  return note("cuMemcpyHtoD");
}
CUresult copy_out(void* target, CUdeviceptr source, std::size_t bytes) {
  std::memcpy(target, reinterpret_cast<void*>(source), bytes);
  return note("cuMemcpyDtoH");
}
CUresult fill(CUdeviceptr address, unsigned char value, std::size_t bytes) {
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return note("cuMemsetD8");
}
CUresult fill_async(CUdeviceptr address, unsigned char, std::size_t bytes, CUstream) {
  state().cleared = address;
  state().cleared_bytes = bytes;
  return note("cuMemsetD8Async", state().fill_result);
}
CUresult copy_on_device(CUdeviceptr, CUdeviceptr, std::size_t, CUstream) {
  return note("cuMemcpyDtoDAsync");
}
CUresult copy_rows(const CUmemcpy2D*, CUstream) { return note("cuMemcpy2DAsync"); }
CUresult wait_value(CUstream, CUdeviceptr address, std::uint32_t value, unsigned) {
  state().awaited = value;
  state().awaited_at = address;
  return note("cuStreamWaitValue32");
}
CUresult write_value(CUstream, CUdeviceptr, std::uint32_t value, unsigned) {
  state().written = value;
  return note("cuStreamWriteValue32");
}
CUresult register_memory(void*, std::size_t, unsigned) { return note("cuMemHostRegister"); }
CUresult unregister_memory(void*) { return note("cuMemHostUnregister"); }
CUresult device_pointer(CUdeviceptr* address, void* memory, unsigned) {
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return note("cuMemHostGetDevicePointer");
}
CUresult enable_peer(CUcontext, unsigned) {
  return note("cuCtxEnablePeerAccess", state().peer_result);
}
CUresult get_handle(CUipcHandle*, CUdeviceptr) { return note("cuIpcGetMemHandle"); }
CUresult open_handle(CUdeviceptr*, CUipcHandle, unsigned) { return note("cuIpcOpenMemHandle"); }
CUresult close_handle(CUdeviceptr) { return note("cuIpcCloseMemHandle"); }
CUresult stream_query(CUstream) { return note("cuStreamQuery", state().stream_query_result); }
CUresult is_capturing(CUstream, int* status) {
  *status = state().is_capturing;
  return kCudaSuccess;
}
CUresult event_create(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(std::size_t{0x6000});
  return note("cuEventCreate");
}
CUresult event_call(CUevent) { return note("cuEvent"); }
CUresult event_record(CUevent event, CUstream stream) {
  FakeCuda& fake = state();
  const int n = fake.event_count.fetch_add(1);
  if (n < FakeCuda::kLogCapacity) {
    fake.events[n] = event;
    fake.event_streams[n] = stream;
  }
  return note("cuEventRecord");
}
CUresult elapsed(float* ms, CUevent, CUevent) {
  *ms = 1.5F;
  return note("cuEventElapsedTime");
}

struct Entry {
  std::string_view name;
  void* address;
};

const Entry kEntries[] = {
    {"cuInit", reinterpret_cast<void*>(&init)},
    {"cuDriverGetVersion", reinterpret_cast<void*>(&version)},
    {"cuGetErrorName", reinterpret_cast<void*>(&error_name)},
    {"cuGetErrorString", reinterpret_cast<void*>(&error_string)},
    {"cuDeviceGetCount", reinterpret_cast<void*>(&count)},
    {"cuDeviceGet", reinterpret_cast<void*>(&device)},
    {"cuDeviceGetName", reinterpret_cast<void*>(&name)},
    {"cuDeviceTotalMem", reinterpret_cast<void*>(&total_memory)},
    {"cuDeviceGetAttribute", reinterpret_cast<void*>(&attribute)},
    {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(&retain)},
    {"cuCtxGetCurrent", reinterpret_cast<void*>(&current)},
    {"cuCtxPushCurrent", reinterpret_cast<void*>(&push)},
    {"cuCtxPopCurrent", reinterpret_cast<void*>(&pop)},
    {"cuCtxGetDevice", reinterpret_cast<void*>(&context_device)},
    {"cuLibraryLoadData", reinterpret_cast<void*>(&load)},
    {"cuLibraryUnload", reinterpret_cast<void*>(&unload)},
    {"cuLibraryGetKernel", reinterpret_cast<void*>(&kernel)},
    {"cuKernelGetFunction", reinterpret_cast<void*>(&function)},
    {"cuKernelSetAttribute", reinterpret_cast<void*>(&set_attribute)},
    {"cuFuncLoad", reinterpret_cast<void*>(&function_load)},
    {"cuLaunchKernelEx", reinterpret_cast<void*>(&launch)},
    {"cuTensorMapEncodeTiled", reinterpret_cast<void*>(&encode_map)},
    {"cuStreamCreate", reinterpret_cast<void*>(&stream_create)},
    {"cuStreamCreateWithPriority", reinterpret_cast<void*>(&stream_create_with_priority)},
    {"cuStreamWaitEvent", reinterpret_cast<void*>(&wait_event)},
    {"cuCtxGetStreamPriorityRange", reinterpret_cast<void*>(&priority_range)},
    {"cuStreamDestroy", reinterpret_cast<void*>(&stream_call)},
    {"cuStreamSynchronize", reinterpret_cast<void*>(&stream_call)},
    {"cuMemAlloc", reinterpret_cast<void*>(&allocate)},
    {"cuMemFree", reinterpret_cast<void*>(&release)},
    {"cuMemcpyHtoD", reinterpret_cast<void*>(&copy_in)},
    {"cuMemcpyDtoH", reinterpret_cast<void*>(&copy_out)},
    {"cuMemsetD8Async", reinterpret_cast<void*>(&fill_async)},
    {"cuMemsetD8", reinterpret_cast<void*>(&fill)},
    {"cuMemcpyDtoDAsync", reinterpret_cast<void*>(&copy_on_device)},
    {"cuStreamWaitValue32", reinterpret_cast<void*>(&wait_value)},
    {"cuStreamWriteValue32", reinterpret_cast<void*>(&write_value)},
    {"cuMemHostRegister", reinterpret_cast<void*>(&register_memory)},
    {"cuMemHostUnregister", reinterpret_cast<void*>(&unregister_memory)},
    {"cuMemHostGetDevicePointer", reinterpret_cast<void*>(&device_pointer)},
    {"cuCtxEnablePeerAccess", reinterpret_cast<void*>(&enable_peer)},
    {"cuIpcGetMemHandle", reinterpret_cast<void*>(&get_handle)},
    {"cuIpcOpenMemHandle", reinterpret_cast<void*>(&open_handle)},
    {"cuIpcCloseMemHandle", reinterpret_cast<void*>(&close_handle)},
    {"cuMemcpy2DAsync", reinterpret_cast<void*>(&copy_rows)},
    {"cuStreamQuery", reinterpret_cast<void*>(&stream_query)},
    {"cuStreamIsCapturing", reinterpret_cast<void*>(&is_capturing)},
    {"cuEventCreate", reinterpret_cast<void*>(&event_create)},
    {"cuEventDestroy", reinterpret_cast<void*>(&event_call)},
    {"cuEventRecord", reinterpret_cast<void*>(&event_record)},
    {"cuEventSynchronize", reinterpret_cast<void*>(&event_call)},
    {"cuEventElapsedTime", reinterpret_cast<void*>(&elapsed)},
};

}  // namespace

FAKE FakeCuda* fake_cuda() { return &state(); }

FAKE CUresult cuGetProcAddress_v2(const char* symbol, void** address, int, std::uint64_t, int*) {
  *address = nullptr;
  for (const Entry& entry : kEntries) {
    if (entry.name == symbol && entry.name != state().missing_entry) *address = entry.address;
  }
  return *address != nullptr ? kCudaSuccess : 500;
}

}  // namespace lacuna
