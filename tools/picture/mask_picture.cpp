#include "tools/picture/mask_picture.hpp"

#include <algorithm>
#include <cmath>

namespace lacuna::tools {
namespace {

constexpr double kMargin = 16, kGap = 18, kPanelPoints = 220, kTitleHeight = 34, kCaption = 16;
constexpr std::size_t kPanelsInRow = 4;

struct Legend {
  Color color;
  const char* text;
};
constexpr std::array<Legend, kTileLooks> kLegend = {{
    {{0xe4, 0xe4, 0xe4}, "invisible"},
    {{0xfb, 0xf3, 0xe2}, "left out"},
    {{0x1f, 0x4e, 0x8c}, "kept"},
    {{0x6f, 0xa8, 0xdc}, "kept, needs the mask"},
    {{0xe0, 0x8a, 0x1e}, "gated"},
}};

/// Tiles of a cell, by look.
using Blend = std::array<std::int64_t, kTileLooks>;

Color mix(const Blend& blend) {
  double total = 0, red = 0, green = 0, blue = 0;
  for (std::size_t n = 0; n < blend.size(); ++n) {
    const auto share = static_cast<double>(blend[n]);
    total += share;
    red += share * kLegend[n].color.red;
    green += share * kLegend[n].color.green;
    blue += share * kLegend[n].color.blue;
  }
  // A cell of mixed tiles takes one of a few shades, so that neighbours join.
  const bool is_mixed = std::ranges::count(blend, 0) < kTileLooks - 1;
  const auto byte = [total, step = is_mixed ? 16.0 : 1.0](double sum) {
    return static_cast<std::uint8_t>(std::min(255.0, std::round(sum / total / step) * step));
  };
  return {byte(red), byte(green), byte(blue)};
}

/// Cells along one side: few enough that a picture of many heads stays a page of text.
std::int64_t cells_of(std::int64_t tiles, std::size_t panels) {
  const std::int64_t most = panels <= 4 ? 128 : panels <= 16 ? 64 : 40;
  return std::min(tiles, most);
}

struct Grid {
  std::int64_t rows, columns, q_tiles, k_tiles;
  std::int64_t first_tile(std::int64_t row) const { return row * q_tiles / rows; }
  std::int64_t first_key_tile(std::int64_t column) const { return column * k_tiles / columns; }
};

Blend blend_of(const MaskPanels& panels, std::size_t panel, const Grid& grid, std::int64_t row,
               std::int64_t column) {
  Blend blend{};
  for (std::int64_t i = grid.first_tile(row); i < grid.first_tile(row + 1); ++i)
    for (std::int64_t j = grid.first_key_tile(column); j < grid.first_key_tile(column + 1); ++j)
      ++blend[static_cast<std::size_t>(panels.look(panel, i, j))];
  return blend;
}

bool same(Color a, Color b) { return a.red == b.red && a.green == b.green && a.blue == b.blue; }

/// Neighbours of one colour in a row of cells become one rectangle.
void draw_panel(const MaskPanels& panels, std::size_t panel, double x, double y, Picture& picture) {
  const std::size_t count = panels.captions.size();
  const Grid grid{cells_of(panels.q_tiles, count), cells_of(panels.k_tiles, count), panels.q_tiles,
                  panels.k_tiles};
  const double height = kPanelPoints / static_cast<double>(std::max<std::int64_t>(grid.rows, 1));
  const double width = kPanelPoints / static_cast<double>(std::max<std::int64_t>(grid.columns, 1));
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    std::size_t begin = picture.rectangles.size();
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const Color color = mix(blend_of(panels, panel, grid, row, column));
      if (picture.rectangles.size() > begin && same(picture.rectangles.back().fill, color))
        picture.rectangles.back().width += width;
      else
        picture.rectangles.push_back({x + static_cast<double>(column) * width,
                                      y + static_cast<double>(row) * height, width, height, color});
    }
  }
  picture.labels.push_back({.x = x, .y = y - 5, .text = panels.captions[panel], .size = 10});
}

void draw_legend(double y, Picture& picture) {
  double x = kMargin;
  for (const Legend& entry : kLegend) {
    picture.rectangles.push_back({x, y, 11, 11, entry.color});
    picture.labels.push_back({.x = x + 16, .y = y + 9.5, .text = entry.text, .size = 10});
    x += 34 + 5.6 * static_cast<double>(std::string_view(entry.text).size());
  }
}

}  // namespace

Picture mask_picture(const MaskPanels& panels) {
  const std::size_t count = panels.captions.size();
  const std::size_t in_row = std::clamp<std::size_t>(count, 2, kPanelsInRow);
  const std::size_t rows = (count + in_row - 1) / in_row;
  constexpr double kPitchX = kPanelPoints + kGap, kPitchY = kPanelPoints + kGap + kCaption;
  Picture picture;
  picture.width = 2 * kMargin + kPitchX * static_cast<double>(in_row) - kGap;
  picture.height = kTitleHeight + kPitchY * static_cast<double>(rows) + 2 * kMargin;
  picture.labels.push_back({.x = kMargin, .y = 22, .text = panels.title, .size = 13, .bold = true});
  for (std::size_t panel = 0; panel < count; ++panel) {
    const std::size_t row = panel / in_row;
    draw_panel(panels, panel, kMargin + kPitchX * static_cast<double>(panel % in_row),
               kTitleHeight + kCaption + kPitchY * static_cast<double>(row), picture);
  }
  draw_legend(picture.height - kMargin - 8, picture);
  return picture;
}

}  // namespace lacuna::tools
