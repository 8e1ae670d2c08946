// SPDX-License-Identifier: Apache-2.0
#include "transport/unforked.h"

#include <pthread.h>

#include <mutex>
#include <utility>
#include <vector>

namespace coll {
namespace {

class Unforked {
 public:
  static Unforked& of_this_process() {
    static Unforked* const all = new Unforked;  // outlives every static that holds a descriptor
    return *all;
  }

  std::shared_ptr<Descriptor> add(Descriptor fd) {
    auto shared = std::make_shared<Descriptor>(std::move(fd));
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [](const auto& held) { return held.expired(); });
    held_.push_back(shared);
    return shared;
  }

 private:
  Unforked() {
    pthread_atfork([] { of_this_process().mutex_.lock(); },
                   [] { of_this_process().mutex_.unlock(); },
                   [] { of_this_process().drop_in_child(); });
  }

  void drop_in_child() {
    for (const auto& held : held_) {
      if (const auto fd = held.lock()) fd->reset();
    }
    held_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<Descriptor>> held_;
};

}  // namespace

std::shared_ptr<Descriptor> closed_in_forks(Descriptor fd) {
  return Unforked::of_this_process().add(std::move(fd));
}

}  // namespace coll
