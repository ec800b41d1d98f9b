// Tables that the page writes to a file when asked. Nothing is fetched: the file is made here, from what the page holds.
const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** A number with all its digits, as NumPy and pandas read it back. */
function digits(value) {
  if (Number.isNaN(value)) return "";
  return Number.isFinite(value) ? String(value) : value > 0 ? "inf" : "-inf";
}

function tableText({ header, columns }) {
  const texts = columns.map((column) =>
    Array.isArray(column) ? column.map(cell) : Array.from(unpack(column), digits),
  );
  const lines = texts[0].map((_, row) => texts.map((column) => column[row]).join(","));
  return `${[header.map(cell).join(","), ...lines].join("\n")}\n`;
}

for (const box of document.querySelectorAll(".download")) {
  const data = JSON.parse(box.querySelector("script").textContent);
  const button = make("button", box, { type: "button", textContent: data.title });
  button.addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([tableText(data)], { type: "text/csv" }));
    make("a", null, { href: address, download: data.filename }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000); // a browser may ask where to save it first
  });
}
