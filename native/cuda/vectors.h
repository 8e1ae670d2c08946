// SPDX-License-Identifier: Apache-2.0
// Sixteen bytes of memory, as one access, and the elements in them; eight where these are of one
// byte, of which sixteen are more than a thread has registers for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cuda/code.h"
#include "cuda/elements.h"

namespace coll::cuda {

inline constexpr std::size_t kVectorBytes = 16;

template <std::size_t kBytes>
struct alignas(kBytes) [[gnu::may_alias]] Vector {
  std::uint64_t word[kBytes / sizeof(std::uint64_t)];
};

// All that is folded lies in the memory of a device, which compilers cannot see: what may lie
// anywhere is read by slower instructions.
template <class Pointer>
constexpr Pointer in_device_memory(Pointer at) noexcept {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(at));
#endif
  return at;
}

template <std::size_t kBytes>
constexpr Vector<kBytes> load_vector(const std::byte* at) noexcept {
  return *as<const Vector<kBytes>>(in_device_memory(at));
}
template <std::size_t kBytes>
constexpr void store_vector(std::byte* at, const Vector<kBytes>& vector) noexcept {
  *as<Vector<kBytes>>(in_device_memory(at)) = vector;
}

// Sixteen bytes of each operand, or one element: what a thread folds at a time. Sums are kept in
// the type that is folded in; where that is the type in memory, partial ones are kept as they would
// lie there, in fewer registers.
template <class Element>
inline constexpr bool kNarrow = sizeof(typename Element::Memory) < sizeof(typename Element::Value);

template <class Element,
          std::size_t kWidth = sizeof(typename Element::Memory) == 1 ? 8 : kVectorBytes>
struct Wide {
  using Memory = typename Element::Memory;
  static constexpr bool kNarrow = cuda::kNarrow<Element>;
  static constexpr std::size_t kBytes = kWidth;
  static constexpr int kCount = static_cast<int>(kBytes / sizeof(Memory));
  static constexpr bool kAwaited = false;
  using Raw = Vector<kBytes>;
  struct Sum {
    static constexpr int kCount = Wide::kCount;
    typename Element::Value lane[static_cast<std::size_t>(kCount)];
  };
  using Kept = std::conditional_t<kNarrow, Sum, Raw>;

  static constexpr Raw load(const std::byte* at) noexcept { return load_vector<kBytes>(at); }
  static constexpr void store(std::byte* at, const Sum& sum) noexcept {
    store_vector(at, narrowed(sum));
  }
  static constexpr Sum widened(const Raw& raw) noexcept {
    const auto memory = std::bit_cast<InMemory>(raw);
    Sum sum{};
    for (int i = 0; i < kCount; ++i) sum.lane[i] = Element{}.load(memory.lane[i]);
    return sum;
  }
  static constexpr Raw narrowed(const Sum& sum) noexcept {
    if constexpr (requires { Element{}.round_both(0.0F, 0.0F); }) {
      Pairs pairs{};
      for (int i = 0; i < kCount / 2; ++i) {
        pairs.pair[i] = Element{}.round_both(sum.lane[2 * i], sum.lane[2 * i + 1]);
      }
      return std::bit_cast<Raw>(pairs);
    } else {
      InMemory memory{};
      for (int i = 0; i < kCount; ++i) memory.lane[i] = Element{}.round(sum.lane[i]);
      return std::bit_cast<Raw>(memory);
    }
  }
  static constexpr Kept kept(const Sum& sum) noexcept {
    if constexpr (kNarrow) {
      return sum;
    } else {
      return narrowed(sum);
    }
  }
  static constexpr Sum taken(const Kept& kept) noexcept {
    if constexpr (kNarrow) {
      return kept;
    } else {
      return widened(kept);
    }
  }

 private:
  struct InMemory {
    Memory lane[static_cast<std::size_t>(kCount)];
  };
  struct Pairs {
    std::uint32_t pair[kBytes / sizeof(std::uint32_t)];
  };
};

template <class Element>
struct Single {
  using Memory = typename Element::Memory;
  static constexpr std::size_t kBytes = sizeof(Memory);
  // As if: of small elements, which are few, one is read after the other, or registers run out.
  static constexpr bool kAwaited = kBytes < 4;
  using Raw = Memory;
  struct Sum {
    static constexpr int kCount = 1;
    typename Element::Value lane[1];
  };
  using Kept = Sum;

  static constexpr Raw load(const std::byte* at) noexcept {
    return as<const Placed<Memory>>(in_device_memory(at))->value;
  }
  static constexpr void store(std::byte* at, const Sum& sum) noexcept {
    as<Placed<Memory>>(in_device_memory(at))->value = Element{}.round(sum.lane[0]);
  }
  static constexpr Sum widened(const Raw& raw) noexcept { return {{Element{}.load(raw)}}; }
  static constexpr Kept kept(const Sum& sum) noexcept { return sum; }
  static constexpr Sum taken(const Kept& kept) noexcept { return kept; }
};

}  // namespace coll::cuda
