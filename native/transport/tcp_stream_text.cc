// SPDX-License-Identifier: Apache-2.0
// What became of a stream, in words.
#include "base/system_error.h"
#include "transport/tcp_stream.h"

namespace coll {

std::string TcpStream::complaint() const {
  switch (complaint_) {
    case Complaint::mark:
      return "what it sends does not begin like a message of this library";
    case Complaint::version:
      return "it speaks version " + std::to_string(header_.version) + " of the protocol, this is " +
             std::to_string(TcpHeader::kVersion) + "; install the same version everywhere";
    case Complaint::length:
      return "it announces a message of " + std::to_string(header_.length) +
             " bytes, and no more than " + std::to_string(limits_.payload) + " are allowed";
    default:
      return (complaint_ == Complaint::place ? "it sends a message of another length than is due"
                                             : "it sends a message that is not due") +
             (" (kind " + std::to_string(header_.kind)) + ", group " +
             std::to_string(header_.group) + ", sequence " + std::to_string(header_.sequence) +
             ", round " + std::to_string(header_.round) + ", tile " + std::to_string(header_.tile) +
             ", " + std::to_string(header_.length) + " bytes)";
  }
}

std::string TcpStream::why() const {
  const std::string connection = "the connection to " + peer_.text();
  switch (state_) {
    case StreamState::open:
      return connection + " is open";
    case StreamState::ended:
      return connection + " has ended: the peer closed it" +
             (in_message() ? " in the middle of a message" : "") +
             (sent_ == posted_ ? "" : " before it had read all");
    case StreamState::reset:
      return system_error(connection + " was reset by the peer: " + doing_, error_).what();
    case StreamState::silent:
      return system_error(connection + " is dead, the peer's machine does not answer: " + doing_,
                          error_)
          .what();
    case StreamState::broken:
      return connection + " is of no use: " + complaint();
    case StreamState::failed:
      return system_error(connection + " broke: " + doing_, error_).what();
    case StreamState::closed:
      break;
  }
  return connection + " was closed here";
}

}  // namespace coll
