// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_joint_call.h"

#include <exception>
#include <utility>

namespace coll {
namespace {

bool is_captured(int device, void* stream) {
  std::uint64_t capture = 0;
  cuda::Sentence why{};
  cuda::check(cuda::library().capture(device, stream, &capture, &why), why);
  return capture != 0;
}

[[noreturn]] void refuse_capture_of(int rank) {
  throw Error(Status::unsupported,
              "the stream of rank " + std::to_string(rank) +
                  " is being captured into a graph, of which collectives among processes are no "
                  "part yet: make the call before or after",
              rank);
}

}  // namespace

GpuJointCall::GpuJointCall(int rank, int ranks, double timeout, WindowUsers users,
                           std::shared_ptr<GpuMeetings> meetings,
                           const std::shared_ptr<GpuStaging>& staging, const Call& call,
                           void* stream)
    : GpuStaged(rank, ranks, timeout, staging, call, stream),
      users_(std::move(users)),
      meetings_(std::move(meetings)),
      device_(staging->device),
      stream_(stream),
      words_(gpu_words(call, ranks, GpuWork::launch) + ", on GPUs"),
      all_told_(static_cast<std::size_t>(ranks)),
      all_shown_(static_cast<std::size_t>(ranks)),
      all_reached_(static_cast<std::size_t>(ranks)) {
  if (!call.words.empty()) words_ = std::string(call.words) + ", " + words_;
  told_.facts = meetings_->facts_of(device_);
  told_.captured = is_captured(device_, stream) ? 1 : 0;
}

template <class Work>
GpuJointCall::Answer GpuJointCall::tried(Work work) {
  Answer answer{.yes = 1};
  try {
    work();
  } catch (const std::exception& error) {
    answer.yes = 0;
    const std::string why = error.what();
    (why.empty() ? "it failed" : why).copy(answer.why, sizeof(answer.why) - 1);
  }
  return answer;
}

Status GpuJointCall::begin() { return agree(&told_, all_told_.data(), sizeof(told_), words_); }

bool GpuJointCall::step(Status& status) {
  switch (stage_) {
    case Stage::facts:
      return hear_facts(status);
    case Stage::windows:
      status = reach_windows();
      return true;
    case Stage::reached:
      settle();
      return decide(status);
    default:
      return GpuStaged::step(status);
  }
}

bool GpuJointCall::hear_facts(Status& status) {
  for (std::size_t rank = 0; rank < all_told_.size(); ++rank) {
    facts_.push_back(all_told_[rank].facts);
    // All of them hear of it, so the communicator works on.
    if (all_told_[rank].captured != 0) refuse_capture_of(static_cast<int>(rank));
  }
  if (meetings_->knows(facts_)) return decide(status);
  if (std::string why = why_not_one_each(facts_); !why.empty()) {
    meetings_->add(facts_, nullptr, std::move(why));
    return decide(status);
  }
  status = show_window();
  return true;
}

// What a rank cannot do it tells the others: they then all go another way.
Status GpuJointCall::show_window() {
  stage_ = Stage::windows;
  shown_.answer = tried([this] {
    joint_ = std::make_shared<GpuJoint>(device_, facts_, users_);
    shown_.window = joint_->handle();
  });
  return agree(&shown_, all_shown_.data(), sizeof(shown_), words_);
}

Status GpuJointCall::reach_windows() {
  stage_ = Stage::reached;
  std::vector<cuda::MemoryHandle> windows;
  bool all = true;
  for (const Shown& shown : all_shown_) {
    windows.push_back(shown.window);
    all = all && shown.answer.yes != 0;
  }
  if (all) reached_ = tried([&] { joint_->open(windows); });
  return agree(&reached_, all_reached_.data(), sizeof(reached_), words_);
}

// The first rank that could not tells why; who has tried nothing, as another one could not, says
// nothing.
void GpuJointCall::settle() {
  std::vector<Answer> answers;
  for (const Shown& shown : all_shown_) answers.push_back(shown.answer);
  answers.insert(answers.end(), all_reached_.begin(), all_reached_.end());
  std::string why;
  for (std::size_t i = 0; i < answers.size() && why.empty(); ++i) {
    if (answers[i].yes != 0 || answers[i].why[0] == '\0') continue;
    why = "rank " + std::to_string(i % all_shown_.size()) + ": " + answers[i].why;
  }
  meetings_->add(facts_, why.empty() ? joint_ : nullptr, why);
}

// False: all is done.
bool GpuJointCall::decide(Status& status) {
  joint_ = meetings_->joint_of(facts_);
  reason_ = meetings_->why(facts_);
  stage_ = Stage::staged;
  if (joint_ != nullptr && launches()) return false;
  status = GpuStaged::begin();
  return true;
}

// What no kernel does none does on any rank.
bool GpuJointCall::launches() {
  return guarded([this] {
    joint_->check_failed();
    try {
      plan_ = joint_->plan(call());
    } catch (const Error& error) {
      if (error.status != Status::unsupported) throw;
      reason_ = error.what();
      return false;
    }
    joint_->launch(call(), *plan_, stream_, limit());
    return true;
  });
}

}  // namespace coll
