// SPDX-License-Identifier: Apache-2.0
// What the library of kernels asks of CUDA while another thread of the program captures a stream in
// the global mode: its own source, over a stand-in for CUDA (gpu/runtime) that refuses what CUDA
// does.
#include "check.h"
#include "cuda/library_memory.cu"
#include "cuda/library_peers.cu"

namespace {

using namespace coll::cuda;

class Capture {
 public:
  Capture() { Captures::global = true; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { Captures::global = false; }
};

// Of the program's thread, which may be capturing itself.
void its_mode_is_as_it_was() { CHECK(Captures::mode == cudaStreamCaptureModeGlobal); }

TEST(memory_of_a_gpu_is_taken_and_given_back) {
  const Capture capture;
  Sentence why{};
  void* memory = nullptr;
  CHECK(coll_cuda_allocate(0, 64, &memory, &why) == 0);
  its_mode_is_as_it_was();
  for (int i = 0; i < 64; ++i) CHECK(static_cast<char*>(memory)[i] == 0);
  const char bytes[] = "code";
  CHECK(coll_cuda_upload(0, memory, bytes, sizeof(bytes), &why) == 0);
  CHECK(std::memcmp(memory, bytes, sizeof(bytes)) == 0);
  coll_cuda_free(0, memory);  // else the address sanitizer tells of it
  its_mode_is_as_it_was();
}

TEST(memory_that_gpus_see_is_taken_and_given_back) {
  const Capture capture;
  Sentence why{};
  void* memory = nullptr;
  CHECK(coll_cuda_allocate_host(64, &memory, &why) == 0);
  CHECK(static_cast<char*>(memory)[63] == 0);
  coll_cuda_free_host(memory);
  its_mode_is_as_it_was();
}

TEST(windows_are_opened_and_closed) {
  const Capture capture;
  Sentence why{};
  int window = 0;
  void* opened = nullptr;
  MemoryHandle handle{};
  CHECK(coll_cuda_export(0, &window, &handle, &why) == 0);
  CHECK(coll_cuda_open(1, &handle, &opened, &why) == 0 && opened == &window);
  handle.process += 1;  // of another process
  CHECK(coll_cuda_open(1, &handle, &opened, &why) == 0 && opened == &window);
  coll_cuda_close(1, &handle, opened);
  its_mode_is_as_it_was();
}

// What is not allowed in the relaxed mode either is told of.
TEST(the_stream_that_is_captured_is_not_waited_for) {
  const Capture capture;
  Sentence why{};
  CHECK(coll_cuda_synchronize(0, nullptr, &why) == -1 && why.text[0] != 0);
}

}  // namespace
