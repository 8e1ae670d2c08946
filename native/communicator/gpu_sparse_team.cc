// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_sparse_team.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "cuda/opened_sparse.h"
#include "kernels/top_k.h"

namespace coll {
namespace {

using Key = std::pair<const void*, int>;
std::mutex teams_mutex;
std::map<Key, std::weak_ptr<GpuSparseTeam>> teams;

void check_owner(const void* memory, std::size_t elements, const char* which, int device) {
  if (elements == 0) return;
  const int owner = cuda::library().owner(memory);
  if (owner == device) return;
  throw Error(Status::invalid_argument,
              std::string(which) + " are memory of " +
                  (owner < 0 ? std::string("the host") : "GPU " + std::to_string(owner)) +
                  ", and the call is one on GPU " + std::to_string(device));
}

void check(const GpuSparsePart& part, int device) {
  if (!exists(part.dtype) || !has_magnitudes(part.dtype)) {
    throw Error(Status::unsupported,
                "sparse vectors on a GPU are float32, float64, float16 or bfloat16 so far");
  }
  if (part.op != Reduction::sum && part.op != Reduction::avg) {
    throw Error(Status::unsupported, "sparse vectors on a GPU have sum and avg so far");
  }
  if (part.index_bytes != 4 && part.index_bytes != 8) {
    throw Error(Status::invalid_argument, "indices on a GPU have 4 or 8 bytes");
  }
  if (part.length > cuda::kMostSparse) {
    throw Error(Status::unsupported, "sparse vectors on a GPU have 2^31 elements at most so far");
  }
  if (part.entries > part.length) {
    throw Error(Status::invalid_argument,
                std::to_string(part.entries) + " entries of a vector of " +
                    std::to_string(part.length) + " elements: add up what has the same index");
  }
  check_owner(part.indices, part.entries, "the indices", device);
  check_owner(part.values, part.entries, "the values", device);
  if (part.output != nullptr) check_owner(part.output, part.length, "the results", device);
}

}  // namespace

std::shared_ptr<GpuSparseTeam> GpuSparseTeam::of(const void* group, int ranks, int device) {
  const std::lock_guard lock(teams_mutex);
  std::erase_if(teams, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<GpuSparseTeam>& known = teams[{group, device}];
  std::shared_ptr<GpuSparseTeam> team = known.lock();
  if (!team) known = team = std::make_shared<GpuSparseTeam>(ranks, device);
  return team;
}

GpuSparseTeam::GpuSparseTeam(int ranks, int device)
    : ranks_(ranks),
      device_(device),
      parts_(static_cast<std::size_t>(ranks)),
      taken_on_(static_cast<std::size_t>(ranks)) {
  if (ranks > cuda::kMostRanks) {
    throw Error(Status::unsupported, std::to_string(ranks) + " ranks share a GPU, which are " +
                                         std::to_string(cuda::kMostRanks) + " at most");
  }
}

void GpuSparseTeam::hand_in(int rank, const GpuSparsePart& part) {
  check(part, device_);
  parts_[static_cast<std::size_t>(rank)] = part;
}

void GpuSparseTeam::select(int rank) const {
  const GpuSparsePart& part = parts_[static_cast<std::size_t>(rank)];
  cuda::Sentence why{};
  const cuda::SelectionCall& call = *part.selection;
  cuda::check(cuda::sparse_library().select(device_, &call, part.stream, &why), why);
}

void GpuSparseTeam::launch() {
  outcome_.reset();
  try {
    launch_all();
  } catch (const Error& error) {
    outcome_ = error;
  }
}

void GpuSparseTeam::follow(void* stream, void* other) const {
  cuda::Sentence why{};
  cuda::check(cuda::library().follow(device_, stream, other, &why), why);
}

cuda::Merge GpuSparseTeam::merge_of(const cuda::MergeRoom& room) const {
  const GpuSparsePart& first = parts_.front();
  cuda::Merge m{};
  std::byte* const at = room_.get();
  m.n = static_cast<std::uint32_t>(first.length);
  m.ranks = static_cast<std::uint32_t>(ranks_);
  m.divisor = first.op == Reduction::avg ? ranks_ : 1;
  m.state = cuda::as<cuda::MergeState>(at + room.state.at);
  const std::size_t tiles = cuda::tiles_in(first.length);
  auto* const runs = cuda::as<cuda::Run>(at + room.source_runs.at);
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const GpuSparsePart& part = parts_[rank];
    m.sources[rank] = {
        runs + rank * tiles,
        static_cast<std::byte*>(const_cast<void*>(part.indices)),
        static_cast<std::byte*>(const_cast<void*>(part.values)),
        part.index_bytes,
        static_cast<std::uint32_t>(part.entries),
    };
    if (part.output != nullptr) m.dense[m.outputs++] = static_cast<std::byte*>(part.output);
  }
  if (m.outputs > 0) return m;
  m.sum = {cuda::as<cuda::Run>(at + room.runs.at), at + room.places.at, at + room.values.at,
           sizeof(std::uint16_t), 0};
  m.starts = cuda::as<std::uint32_t>(at + room.starts.at);
  return m;
}

void GpuSparseTeam::launch_all() {
  const GpuSparsePart& first = parts_.front();
  const bool sparse = first.output == nullptr;
  std::uint64_t entries = 0;
  for (const GpuSparsePart& part : parts_) entries += part.entries;
  const cuda::MergeRoom room = cuda::room_of_merge(first.length, static_cast<std::uint32_t>(ranks_),
                                                   sparse, entries, size_of(first.dtype));
  if (room_.bytes() < room.bytes) {
    room_ = cuda::DeviceMemory();  // before there is more of it
    room_ = cuda::DeviceMemory(device_, room.bytes);
  }
  last_ = merge_of(room);
  void* const stream = first.stream;
  for (const GpuSparsePart& part : parts_) follow(stream, part.stream);
  for (std::optional<void*>& taken : taken_on_) {
    if (taken) follow(stream, *taken);
    taken.reset();
  }
  const cuda::SparseLibrary& library = cuda::sparse_library();
  cuda::Sentence why{};
  cuda::check(library.clear(device_, last_.state, sizeof(*last_.state), stream, &why), why);
  if (sparse) {  // of no elements no stage says that there are none
    const std::size_t words =
        (cuda::tiles_in(first.length) + std::size_t{1}) * sizeof(*last_.starts);
    cuda::check(library.clear(device_, last_.starts, words, stream, &why), why);
  }
  for (const auto stage :
       {cuda::MergeStage::find, cuda::MergeStage::place, cuda::MergeStage::merge}) {
    if (stage == cuda::MergeStage::place && !sparse) continue;
    cuda::check(library.merge(device_, &last_, static_cast<std::int32_t>(stage),
                              static_cast<std::int32_t>(first.dtype), stream, &why),
                why);
  }
  for (const GpuSparsePart& part : parts_) follow(part.stream, stream);
}

std::size_t GpuSparseTeam::entries(void* stream) const {
  if (last_.state == nullptr) return 0;
  const cuda::SparseLibrary& library = cuda::sparse_library();
  cuda::Sentence why{};
  cuda::MergeState state{};
  cuda::check(library.download(device_, &state, last_.state, sizeof(state), stream, &why), why);
  if (state.wrong != 0) {
    throw Error(Status::invalid_argument,
                "indices of a sparse vector on the GPU do not ascend, or are not below its length: "
                "sort them, and add up what has the same index");
  }
  std::uint32_t entries = 0;
  if (last_.starts != nullptr) {
    cuda::check(library.download(device_, &entries, last_.starts + cuda::tiles_in(last_.n),
                                 sizeof(entries), stream, &why),
                why);
  }
  return entries;
}

void GpuSparseTeam::take(int rank, void* stream, std::uint32_t index_bytes, void* indices,
                         void* values) {
  if (last_.starts == nullptr) {
    throw Error(Status::invalid_argument, "there is no sparse sum on this GPU to be taken");
  }
  cuda::Merge pack = last_;
  pack.index_bytes = index_bytes;
  pack.out_indices = static_cast<std::byte*>(indices);
  pack.out_values = static_cast<std::byte*>(values);
  cuda::Sentence why{};
  cuda::check(cuda::sparse_library().merge(
                  device_, &pack, static_cast<std::int32_t>(cuda::MergeStage::pack),
                  static_cast<std::int32_t>(parts_.front().dtype), stream, &why),
              why);
  taken_on_[static_cast<std::size_t>(rank)] = stream;
}

}  // namespace coll
