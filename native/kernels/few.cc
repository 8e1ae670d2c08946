// SPDX-License-Identifier: Apache-2.0
#include "kernels/few.h"

#include "kernels/element.h"
#include "kernels/operation.h"

namespace coll {
namespace {

using namespace kernels;

template <class Element, class Op>
void fold_few(void* to, const void* first, const void* second, std::size_t n) noexcept {
  using Cell = Stored<typename Element::Memory>;
  constexpr Element element;
  auto* cell = static_cast<Cell*>(to);
  const auto *a = static_cast<const Cell*>(first), *b = static_cast<const Cell*>(second);
  for (std::size_t i = 0; i < n; ++i) {
    cell[i].value = element.round(Op::apply(element.load(a[i].value), element.load(b[i].value)));
    asm volatile("" ::: "memory");  // one by one: to find out how many go together takes longer
  }
}

template <class Element>
FewKernel few_of(Reduction op) noexcept {
  switch (op) {
    case Reduction::sum:
      return fold_few<Element, Sum>;
    case Reduction::prod:
      return fold_few<Element, Product>;
    case Reduction::min:
      return fold_few<Element, Minimum>;
    case Reduction::max:
      return fold_few<Element, Maximum>;
    default:
      return nullptr;
  }
}

}  // namespace

FewKernel few_kernel(Dtype dtype, Reduction op) noexcept {
  switch (dtype) {
    case Dtype::float32:
      return few_of<Plain<float>>(op);
    case Dtype::float64:
      return few_of<Plain<double>>(op);
    case Dtype::bfloat16:
      return few_of<Bfloat16>(op);
    case Dtype::int8:
      return few_of<Plain<std::int8_t>>(op);
    case Dtype::int16:
      return few_of<Plain<std::int16_t>>(op);
    case Dtype::int32:
      return few_of<Plain<std::int32_t>>(op);
    case Dtype::int64:
      return few_of<Plain<std::int64_t>>(op);
    case Dtype::uint8:
      return few_of<Plain<std::uint8_t>>(op);
    case Dtype::uint16:
      return few_of<Plain<std::uint16_t>>(op);
    case Dtype::uint32:
      return few_of<Plain<std::uint32_t>>(op);
    case Dtype::uint64:
      return few_of<Plain<std::uint64_t>>(op);
    default:
      return nullptr;
  }
}

}  // namespace coll
