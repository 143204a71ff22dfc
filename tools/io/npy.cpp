#include "tools/io/npy.hpp"

#include <charconv>

namespace lacuna::tools {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct NumpyType {
  std::string_view descr;
  ArrayType type;
};
/// The first spelling of a type is the one that is written.
constexpr NumpyType kNumpyTypes[] = {
    {"<f8", ArrayType::kF64}, {"<f4", ArrayType::kF32}, {"<f2", ArrayType::kF16},
    {"<i8", ArrayType::kI64}, {"<i4", ArrayType::kI32}, {"|u1", ArrayType::kU8},
    {"<u1", ArrayType::kU8},  {"|b1", ArrayType::kU8},
};

void add(Diagnostics& diagnostics, Code code, std::string message) {
  diagnostics.add({.code = code, .message = std::move(message)});
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

/// What follows `'key':` in the header's dictionary, or "".
std::string_view value_of(std::string_view header, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "'";
  const std::size_t at = header.find(quoted);
  if (at == std::string_view::npos) return {};
  std::string_view rest = trim(header.substr(at + quoted.size()));
  if (rest.empty() || rest.front() != ':') return {};
  return trim(rest.substr(1));
}

/// "(4, 4096, 128)..." -> extents.
std::optional<std::vector<std::int64_t>> read_shape(std::string_view text) {
  const std::size_t close = text.find(')');
  if (text.empty() || text.front() != '(' || close == std::string_view::npos) return std::nullopt;
  std::string_view inside = trim(text.substr(1, close - 1));
  std::vector<std::int64_t> shape;
  while (!inside.empty()) {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const std::string_view number = trim(inside.substr(0, comma));
    std::int64_t extent = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), extent);
    if (error != std::errc() || end != number.data() + number.size() || extent < 0) {
      return std::nullopt;
    }
    shape.push_back(extent);
    inside = trim(inside.substr(std::min(comma + 1, inside.size())));
  }
  return shape;
}

std::optional<ArrayType> read_type(std::string_view text, Diagnostics& diagnostics) {
  const std::size_t close = text.empty() ? std::string_view::npos : text.find(text.front(), 1);
  const bool quoted = close != std::string_view::npos && text.front() == '\'';
  const std::string_view descr = quoted ? text.substr(1, close - 1) : std::string_view("nothing");
  std::string known_names;
  for (const NumpyType& known : kNumpyTypes) {
    if (known.descr == descr) return known.type;
    known_names += (known_names.empty() ? "" : ", ") + std::string(known.descr);
  }
  add(diagnostics, Code::kTensorDType,
      "npy: descr: expected one of " + known_names + ", got " + std::string(descr));
  return std::nullopt;
}

/// The dictionary, and the data behind it.
std::optional<std::string_view> read_npy_header(std::string_view bytes, std::string_view& data,
                                                Diagnostics& diagnostics) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    add(diagnostics, Code::kFileFormat, "npy: the file does not begin with \\x93NUMPY");
    if (bytes.starts_with("PK"))
      diagnostics.items.back().helps.emplace_back(
          "it is an archive (.npz): write each array by numpy.save");
    return std::nullopt;
  }
  // Version 1 has two bytes of header length, versions 2 and 3 have four.
  const std::size_t version = bytes.size() > 6 ? static_cast<unsigned char>(bytes[6]) : 1;
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t begin = kMagic.size() + 2 + length_bytes;
  std::size_t header_bytes = 0;
  for (std::size_t i = 0; begin <= bytes.size() && i < length_bytes; ++i) {
    header_bytes |= std::size_t{static_cast<unsigned char>(bytes[8 + i])} << (8 * i);
  }
  if (begin > bytes.size() || header_bytes > bytes.size() - begin) {
    add(diagnostics, Code::kFileTruncated,
        "npy: the file of " + std::to_string(bytes.size()) + " bytes ends within its header");
    return std::nullopt;
  }
  data = bytes.substr(begin + header_bytes);
  return bytes.substr(begin, header_bytes);
}

}  // namespace

std::optional<Array> parse_npy(std::string_view bytes, Diagnostics& diagnostics) {
  std::string_view data;
  const auto header = read_npy_header(bytes, data, diagnostics);
  if (!header) return std::nullopt;
  const auto type = read_type(value_of(*header, "descr"), diagnostics);
  const auto shape = read_shape(value_of(*header, "shape"));
  const auto count = shape ? element_count(*shape) : std::nullopt;
  if (!count) {
    add(diagnostics, Code::kFileFormat, "npy: shape: expected a tuple of extents");
  }
  const bool c_order = value_of(*header, "fortran_order").substr(0, 5) == "False";
  if (!c_order) {
    add(diagnostics, Code::kFileFormat,
        "npy: fortran_order: expected False (write with numpy.ascontiguousarray)");
  }
  if (!type || !count || !c_order) return std::nullopt;
  const auto expected = static_cast<std::size_t>(*count * size_bytes(*type));
  if (data.size() < expected) {
    add(diagnostics, Code::kFileTruncated,
        "npy: expected " + std::to_string(expected) + " bytes of data for shape " +
            print_shape(*shape) + " of " + std::string(name_of(*type)) + ", got " +
            std::to_string(data.size()));
    return std::nullopt;
  }
  return Array{*type, *shape, std::string(data.substr(0, expected))};
}

std::string print_npy(const Array& array) {
  if (array.type == ArrayType::kBF16) {
    return print_npy(from_f32(to_f32(array), array.shape, ArrayType::kF32));
  }
  std::string header = "{'descr': '";
  for (const NumpyType& known : kNumpyTypes) {
    if (known.type != array.type) continue;
    header += known.descr;
    break;
  }
  header += "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : array.shape) header += std::to_string(extent) + ", ";
  header += "), }";
  // Magic, version, length and header fill a multiple of 64 bytes; the header ends with a newline.
  const std::size_t prefix = kMagic.size() + 4;
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
            static_cast<char>(header.size() >> 8)};
  return bytes + header + array.bytes;
}

}  // namespace lacuna::tools
