// SPDX-License-Identifier: Apache-2.0
// The library of kernels for sparse vectors without a GPU, as emulated_library.cc has the rest.
#include <cstdio>
#include <cstring>

#include "cuda/block_emulation.h"
#include "cuda/merger.h"
#include "cuda/selection_call.h"
#include "cuda/selector.h"
#include "emulated_streams.h"

namespace coll::cuda {
namespace {

constexpr int kSparseThreads = 2;
constexpr std::uint32_t kSparseBlocks = 2;

std::int32_t refused(const char* text, Sentence* why) noexcept {
  std::snprintf(why->text, sizeof(why->text), "%s", text);
  return -1;
}

template <class Kind>
void select_now(const SelectionCall& call) {
  std::size_t zeros = 0;
  const Selection s = selection_of<Kind>(call, kSparseThreads, zeros);
  std::memset(call.room, 0, zeros);
  in_stages(s, Kind::Magnitude::kBits, Kind::kFed, [](const Selection& told, Stage stage) {
    emulate_blocks(
        kSparseBlocks, kSparseThreads, sizeof(SelectionShared),
        [&](BlockThread& group, std::uint32_t block) {
          Selector<Kind, AsItIs, BlockThread>(group, told, block, kSparseBlocks).run(stage);
        });
    return true;
  });
}

template <class Element>
void merge_now(const Merge& told, std::int32_t stage) {
  emulate_blocks(kSparseBlocks, kSparseThreads, merge_shared_bytes<typename Element::Value>(),
                 [&](BlockThread& group, std::uint32_t block) {
                   Merger<Element, AsItIs, BlockThread>(group, told, block, kSparseBlocks)
                       .run(static_cast<MergeStage>(stage));
                 });
}

}  // namespace

extern "C" {

std::size_t coll_cuda_select_room(const SelectionCall* call) noexcept {
  return bytes_of_room(*call, kSparseThreads);
}

std::int32_t coll_cuda_select(std::int32_t, const SelectionCall* call, void* stream,
                              Sentence* why) noexcept {
  const auto run = [&]<class Kind>() {
    if (call->k > 0) emulated_enqueue(stream, [told = *call] { select_now<Kind>(told); });
  };
  return use_selection(*call, run) ? 0 : refused("selecting: no such kernel", why);
}

std::int32_t coll_cuda_merge(std::int32_t, const Merge* merge, std::int32_t stage,
                             std::int32_t dtype, void* stream, Sentence* why) noexcept {
  const auto run = [&]<class Element>() {
    if (merge->n == 0) return;
    emulated_enqueue(stream, [told = *merge, stage] { merge_now<Element>(told, stage); });
  };
  return use_values(static_cast<Dtype>(dtype), run) ? 0 : refused("adding: no such kernel", why);
}

std::int32_t coll_cuda_clear(std::int32_t, void* memory, std::size_t bytes, void* stream,
                             Sentence*) noexcept {
  emulated_enqueue(stream, [=] { std::memset(memory, 0, bytes); });
  return 0;
}

std::int32_t coll_cuda_download(std::int32_t, void* to, const void* from, std::size_t bytes, void*,
                                Sentence*) noexcept {
  std::memcpy(to, from, bytes);
  return 0;
}

}  // extern "C"

}  // namespace coll::cuda
