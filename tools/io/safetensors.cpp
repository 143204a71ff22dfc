#include "tools/io/safetensors.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

namespace lacuna::tools {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;

struct NamedType {
  std::string_view name;
  ArrayType type;
};
constexpr NamedType kTypes[] = {
    {"F64", ArrayType::kF64},   {"F32", ArrayType::kF32}, {"F16", ArrayType::kF16},
    {"BF16", ArrayType::kBF16}, {"I64", ArrayType::kI64}, {"I32", ArrayType::kI32},
    {"U8", ArrayType::kU8},
};

std::string_view type_name(ArrayType type) {
  for (const NamedType& known : kTypes) {
    if (known.type == type) return known.name;
  }
  return "?";
}

void add_error(Diagnostics& diagnostics, Code code, std::string message) {
  diagnostics.add({.code = code, .message = std::move(message)});
}

/// An array of non-negative integers; nullopt if it is anything else.
std::optional<std::vector<std::int64_t>> read_integers(const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const json& value : *found) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
      return std::nullopt;
    }
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

std::optional<ArrayType> read_type(const json& entry, const std::string& label,
                                   Diagnostics& diagnostics) {
  const auto found = entry.find("dtype");
  const std::string name =
      found != entry.end() && found->is_string() ? found->get<std::string>() : "nothing";
  std::string known_names;
  for (const NamedType& known : kTypes) {
    if (known.name == name) return known.type;
    known_names += (known_names.empty() ? "" : ", ") + std::string(known.name);
  }
  add_error(diagnostics, Code::kTensorDType,
            label + ": dtype: expected one of " + known_names + ", got " + name);
  return std::nullopt;
}

std::optional<Array> read_tensor(const std::string& name, const json& entry, std::string_view data,
                                 Diagnostics& diagnostics) {
  const std::string label = "tensor " + name;
  if (!entry.is_object()) {
    add_error(diagnostics, Code::kFileFormat,
              label + ": expected an object with dtype, shape and data_offsets");
    return std::nullopt;
  }
  const auto type = read_type(entry, label, diagnostics);
  const auto shape = read_integers(entry, "shape");
  const auto offsets = read_integers(entry, "data_offsets");
  const auto count = shape ? element_count(*shape) : std::nullopt;
  if (!count) {
    add_error(diagnostics, Code::kTensorShape, label + ": shape: expected a list of extents");
  }
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    add_error(diagnostics, Code::kFileFormat, label + ": data_offsets: expected [begin, end]");
    return std::nullopt;
  }
  if (!type || !count) return std::nullopt;
  const std::int64_t begin = (*offsets)[0];
  const std::int64_t end = (*offsets)[1];
  if (static_cast<std::uint64_t>(end) > data.size()) {
    add_error(diagnostics, Code::kFileTruncated,
              label + ": data_offsets " + print_shape(*offsets) + ": the file holds only " +
                  std::to_string(data.size()) + " bytes of data");
    return std::nullopt;
  }
  const std::int64_t expected = *count * size_bytes(*type);
  if (end - begin != expected) {
    add_error(diagnostics, Code::kTensorShape,
              label + ": data_offsets: expected " + std::to_string(expected) + " bytes for shape " +
                  print_shape(*shape) + " of " + std::string(type_name(*type)) + ", got " +
                  std::to_string(end - begin));
    return std::nullopt;
  }
  return Array{*type, *shape,
               std::string(data.substr(static_cast<std::size_t>(begin),
                                       static_cast<std::size_t>(expected)))};
}

/// The header as JSON, and the data behind it.
std::optional<json> read_safetensors_header(std::string_view bytes, std::string_view& data,
                                            Diagnostics& diagnostics) {
  std::uint64_t header_bytes = 0;
  if (bytes.size() < kLengthBytes) {
    add_error(diagnostics, Code::kFileTruncated,
              "safetensors: expected 8 bytes of header length, got a file of " +
                  std::to_string(bytes.size()) + " bytes");
    return std::nullopt;
  }
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  constexpr std::uint64_t kNoHeader = std::uint64_t{1} << 40;  // what eight letters are, and more
  if (header_bytes >= kNoHeader) {
    const bool is_npy = bytes.starts_with("\x93NUMPY");
    add_error(diagnostics, Code::kFileFormat,
              std::string("safetensors: the file does not begin with the length of a header") +
                  (is_npy ? "; it is a .npy file, which has one tensor without a name" : ""));
    return std::nullopt;
  }
  if (header_bytes > bytes.size() - kLengthBytes) {
    add_error(diagnostics, Code::kFileTruncated,
              "safetensors: expected a header of " + std::to_string(header_bytes) +
                  " bytes, got a file of " + std::to_string(bytes.size()) + " bytes");
    return std::nullopt;
  }
  const std::string_view text = bytes.substr(kLengthBytes, static_cast<std::size_t>(header_bytes));
  data = bytes.substr(kLengthBytes + text.size());
  json header = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) {
    add_error(diagnostics, Code::kFileFormat, "safetensors: the header is not a JSON object");
    return std::nullopt;
  }
  return header;
}

}  // namespace

std::optional<Safetensors> parse_safetensors(std::string_view bytes, Diagnostics& diagnostics) {
  std::string_view data;
  const std::optional<json> header = read_safetensors_header(bytes, data, diagnostics);
  if (!header) return std::nullopt;
  const std::size_t errors_before = diagnostics.items.size();
  Safetensors file;
  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) {
        add_error(diagnostics, Code::kFileFormat, "safetensors: __metadata__: expected an object");
        continue;
      }
      for (const auto& [key, value] : entry.items()) {
        if (value.is_string()) file.metadata[key] = value.get<std::string>();
      }
    } else if (auto tensor = read_tensor(name, entry, data, diagnostics)) {
      file.tensors.emplace(name, std::move(*tensor));
    }
  }
  if (diagnostics.items.size() != errors_before) return std::nullopt;
  return file;
}

std::string print_safetensors(const Safetensors& file) {
  json header = json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::size_t offset = 0;
  for (const auto& [name, array] : file.tensors) {
    header[name] = {{"dtype", type_name(array.type)},
                    {"shape", array.shape},
                    {"data_offsets", {offset, offset + array.bytes.size()}}};
    offset += array.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins 8-byte aligned
  const std::uint64_t header_bytes = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &header_bytes, kLengthBytes);
  bytes += text;
  for (const auto& [name, array] : file.tensors) bytes += array.bytes;
  return bytes;
}

}  // namespace lacuna::tools
