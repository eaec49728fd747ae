// Sets a chosen theme before the first paint, so that a dark page does not flash white.
try {
  var theme = localStorage.getItem('pa.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch (blocked) {
  // Without storage there is no choice to restore.
}
