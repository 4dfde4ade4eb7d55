-- Sorts postcards by the colour of their stamps.
local stamps = require("stamps.colours")

local function sort_cards(cards)
  return stamps.sort(cards)
end

function main() end
