// SPDX-License-Identifier: Apache-2.0
#include "base/formula.h"

#include <bit>
#include <cctype>
#include <string>

#include "base/error.h"

namespace coll {
namespace {

// comparison := sum [> sum]; sum := term {+- term}; term := atom {*/ atom}; atom := number | name |
// ( comparison )
class Parser {
 public:
  Parser(std::string_view text, int p) : text_(text), p_(p) {}

  double parse() {
    const double value = comparison();
    if (at_ != text_.size()) fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(Status::invalid_argument, "formula '" + std::string(text_) +
                                              "': not understood at character " +
                                              std::to_string(at_ + 1));
  }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  double comparison() {
    const double left = sum();
    if (!take('>')) return left;
    return left > sum() ? 1 : 0;
  }
  double sum() {
    double value = term();
    for (;;) {
      if (take('+')) {
        value += term();
      } else if (take('-')) {
        value -= term();
      } else {
        return value;
      }
    }
  }
  double term() {
    double value = atom();
    for (;;) {
      if (take('*')) {
        value *= atom();
      } else if (take('/')) {
        value /= atom();
      } else {
        return value;
      }
    }
  }
  double atom() {
    const char c = peek();
    if (++depth_ > 100) fail();
    double value = 0;
    if (take('(')) {
      value = comparison();
      if (!take(')')) fail();
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      while (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
        value = value * 10 + (text_[at_++] - '0');
      }
    } else {
      value = name(c);
    }
    --depth_;
    return value;
  }
  // ceil(log2 x), 0 up to 1.
  double logarithm() {
    if (!take('(')) fail();
    const double x = comparison();
    if (!take(')')) fail();
    double power = 1;
    int rounds = 0;
    for (; power < x && rounds < 64; power *= 2) ++rounds;
    return rounds;
  }
  double name(char c) {
    if (text_.substr(at_, 2) == "lg") {
      at_ += 2;
      return logarithm();
    }
    const int floor = std::bit_width(static_cast<unsigned>(p_)) - 1;
    const int ceil = p_ <= 1 ? 0 : std::bit_width(static_cast<unsigned>(p_ - 1));
    ++at_;
    switch (c) {
      case 'p':
        return p_;
      case 'L':
        return ceil;
      case 'K':
        return floor;
      case 'P':
        return 1 << floor;
      default:
        --at_;
        fail();
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int p_;
  int depth_ = 0;
};

}  // namespace

double evaluate(std::string_view formula, int p) {
  if (p < 1) throw Error(Status::invalid_argument, "a formula needs p >= 1");
  return Parser(formula, p).parse();
}

}  // namespace coll
