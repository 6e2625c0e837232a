// --- values under the pointer -----------------------------------------------------------------------------------------

const numberOf = (text) => Number.parseFloat(String(text).replaceAll("−", "-").replaceAll(",", ""));

// What Vega tells of a place, as a table. Series stand in the order of their values, each with its line and marker.
function tooltipOf(spec, value, sanitize) {
  if (typeof value !== "object" || value === null) return sanitize(value);
  const series = new Map((spec.usermeta?.series ?? []).map((one) => [one.name, one]));
  const rows = Object.entries(value).map(([name, text]) => ({ name, text, style: series.get(name) ?? series.get(text) }));
  const isSeries = ({ name }) => series.has(name);
  const sorted = rows.filter(isSeries).sort((a, b) => numberOf(b.text) - numberOf(a.text));
  const cells = [...rows.filter((row) => !isSeries(row)), ...sorted].map(({ name, text, style }) => {
    const line = style ? swatch(style).outerHTML : "";
    return `<tr><td class="key">${isSeries({ name }) ? line : ""}${sanitize(name)}</td>` +
      `<td class="value">${isSeries({ name }) ? "" : line}${sanitize(text)}</td></tr>`;
  });
  return `<table>${cells.join("")}</table>`;
}
