// SPDX-License-Identifier: Apache-2.0
// What native/cuda/library_memory.cu and library_peers.cu call of CUDA, without a GPU: memory of
// this process, work that is done at once, and what CUDA refuses while a stream is captured
// (`Captures`).
#pragma once

#include <cstdlib>
#include <cstring>

enum cudaError_t {
  cudaSuccess,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidValue,
  cudaErrorStreamCaptureUnsupported,
  cudaErrorStreamCaptureImplicit,
  cudaErrorPeerAccessUnsupported,
  cudaErrorPeerAccessAlreadyEnabled,
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDefault };
enum cudaMemoryType { cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
};
struct cudaIpcMemHandle_t {
  unsigned char words[64];
};
using cudaStream_t = void*;
using cudaEvent_t = void*;
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
inline constexpr unsigned cudaHostAllocMapped = 1, cudaHostAllocPortable = 2;
inline constexpr unsigned cudaIpcMemLazyEnablePeerAccess = 1;

struct Captures {
  static inline bool global = false;  // another thread captures a stream in the global mode
  static inline thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

  // Of calls that may be none for a capture.
  static cudaError_t unsafe() noexcept {
    const bool refused = global && mode == cudaStreamCaptureModeGlobal;
    return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
  }
  // Of what has to do with all streams of a device, in whatever mode.
  static cudaError_t of_all_streams() noexcept {
    return global ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
  }
  // The default stream waits for the others.
  static cudaError_t on(cudaStream_t stream) noexcept {
    return global && stream == nullptr ? cudaErrorStreamCaptureImplicit : cudaSuccess;
  }
};

inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) noexcept {
  const cudaStreamCaptureMode before = Captures::mode;
  Captures::mode = *mode;
  *mode = before;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) noexcept {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) noexcept { return cudaSuccess; }
inline cudaError_t cudaGetLastError() noexcept { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t error) noexcept {
  return error == cudaErrorStreamCaptureUnsupported ? "not permitted when a stream is capturing"
                                                    : "another error";
}
inline const char* cudaGetErrorName(cudaError_t) noexcept { return "of the stand-in"; }

inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) noexcept {
  if (const cudaError_t error = Captures::unsafe(); error != cudaSuccess) return error;
  *memory = std::malloc(bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void* memory) noexcept {
  if (const cudaError_t error = Captures::unsafe(); error != cudaSuccess) return error;
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) noexcept {
  return cudaMalloc(memory, bytes);
}
inline cudaError_t cudaFreeHost(void* memory) noexcept { return cudaFree(memory); }
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes) noexcept {
  if (const cudaError_t error = Captures::on(nullptr); error != cudaSuccess) return error;
  std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes,
                                   cudaStream_t stream) noexcept {
  if (const cudaError_t error = Captures::on(stream); error != cudaSuccess) return error;
  std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) noexcept {
  if (const cudaError_t error = Captures::on(stream); error != cudaSuccess) return error;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes,
                              cudaMemcpyKind kind) noexcept {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
inline cudaError_t cudaDeviceSynchronize() noexcept { return Captures::of_all_streams(); }
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void*) noexcept {
  *found = {cudaMemoryTypeHost, 0};
  return cudaSuccess;
}

// A stream, and an event, is a byte of its own.
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) noexcept {
  *stream = std::malloc(1);
  return *stream != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) noexcept {
  std::free(stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) noexcept {
  return Captures::on(stream);
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) noexcept {
  return cudaStreamCreateWithFlags(event, flags);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) noexcept { return cudaStreamDestroy(event); }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) noexcept { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t) noexcept { return cudaSuccess; }

inline cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) noexcept {
  if (const cudaError_t error = Captures::unsafe(); error != cudaSuccess) return error;
  *handle = {};
  std::memcpy(handle->words, static_cast<const void*>(&memory), sizeof(memory));
  return cudaSuccess;
}
inline cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle,
                                        unsigned) noexcept {
  if (const cudaError_t error = Captures::unsafe(); error != cudaSuccess) return error;
  std::memcpy(static_cast<void*>(memory), handle.words, sizeof(*memory));
  return cudaSuccess;
}
inline cudaError_t cudaIpcCloseMemHandle(void*) noexcept { return Captures::unsafe(); }
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) noexcept {
  *can = 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) noexcept { return Captures::unsafe(); }
