// SPDX-License-Identifier: Apache-2.0
// Large memory that is given back is there for the next who takes about as much, and bounded.
#include "base/memory_pool.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

using namespace coll;

namespace {

constexpr std::size_t kSome = 3 * kLeastPooled;

// What earlier tests left must not serve here.
void use_up() {
  std::vector<PooledBytes> taken;
  for (std::size_t bytes = kLeastPooled; bytes <= kMostKept && kept_bytes() > 0;) {
    const std::size_t before = kept_bytes();
    taken.push_back(pooled(bytes));
    if (kept_bytes() == before) bytes += bytes / 8;
    taken.back().get_deleter().room = 0;  // it goes back to the heap
  }
}

TEST(what_is_given_back_serves_the_next) {
  use_up();
  std::byte* const first = pooled(kSome).get();
  CHECK(kept_bytes() == kSome);
  PooledBytes again = pooled(kSome - 1000);  // a little less
  CHECK(again.get() == first);
  CHECK(kept_bytes() == std::size_t{0});
  CHECK(pooled(kSome).get() != first);  // that one is in use
  again.reset();
  CHECK(kept_bytes() == 2 * kSome);
}

TEST(what_is_much_smaller_takes_other_memory) {
  use_up();
  {
    const PooledBytes large = pooled(16 * kLeastPooled);
  }
  const PooledBytes small = pooled(kLeastPooled);
  CHECK(kept_bytes() == 16 * kLeastPooled);
}

TEST(small_and_huge_memory_goes_back_to_the_heap) {
  use_up();
  {
    const PooledBytes small = pooled(kLeastPooled - 1), none = pooled(0);
  }
  {
    const PooledBytes huge = pooled(kMostKept + 1);
  }
  CHECK(kept_bytes() == std::size_t{0});
}

TEST(a_process_keeps_no_more_than_it_may) {
  use_up();
  std::vector<PooledBytes> all;
  for (int i = 0; i < 100; ++i) all.push_back(pooled(kMostKept / 50));
  all.clear();
  CHECK(kept_bytes() <= kMostKept);
  CHECK(kept_bytes() > kMostKept / 2);
  {
    const PooledBytes most = pooled(kMostKept);
  }
  CHECK(kept_bytes() == kMostKept);  // the others have gone for it
}

TEST(memory_that_cannot_be_is_told) {
  CHECK(pooled(std::size_t{1} << 62U) == nullptr);
  bool thrown = false;
  try {
    pooled_or_throw(std::size_t{1} << 62U);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown);
}

TEST(nobody_gets_what_another_holds) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong] {
      for (std::size_t i = 0; i < 2000; ++i) {
        const std::size_t bytes = kLeastPooled + i * 7919 % kLeastPooled;
        const std::shared_ptr<std::byte[]> mine = pooled_or_throw(bytes);
        std::memset(mine.get(), t, 64);
        std::memset(mine.get() + bytes - 64, t, 64);
        std::this_thread::yield();
        if (mine[63] != std::byte(t) || mine[bytes - 1] != std::byte(t)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load() == 0);
}

}  // namespace
