// Before anything is drawn: what the person chose, or what the system says.
(() => {
  const chosen = localStorage.getItem("leafcast-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
