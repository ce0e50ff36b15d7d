// Says why the page cannot be shown: old browsers, parts that do not load, errors of scripts. In JavaScript of 2009.
(function () {
  var OLD = "This browser is too old for this page. Use Chrome or Edge 93, Firefox 92, Safari 15.4, or a newer one.";
  var isShown = false, isReloading = false, PAUSE_MS = 1000, AGAIN_MS = 60000;

  function isOld() {
    return !("noModule" in document.createElement("script")) || !Object.hasOwn || !window.ResizeObserver || !window.EventSource;
  }

  function show(text) {
    var main = document.getElementById("main"), note = document.createElement("p"), loading = document.getElementById("loading");
    if (isShown || !main) return;
    isShown = true;
    note.className = "problem";
    note.setAttribute("role", "alert");
    note.appendChild(document.createTextNode(text));
    main.parentNode.insertBefore(note, main);
    if (loading) loading.parentNode.removeChild(loading);
  }

  // A change of the network ends requests: load the page again, but not in a circle.
  function reload() {
    var now = new Date().getTime();
    try {
      if (isReloading || now - Number(sessionStorage.getItem("reloaded")) < AGAIN_MS) return isReloading;
      sessionStorage.setItem("reloaded", String(now));
    } catch (error) {
      return false;
    }
    isReloading = true;
    setTimeout(function () { location.reload(); }, PAUSE_MS);
    return true;
  }

  window.addEventListener("error", function (event) {
    var name = event.target && event.target.nodeName;
    if (name === "SCRIPT" || name === "LINK") reload() || show("A part of the page cannot be loaded. Reload it; if that does not help, start the server again.");
    else if (event.error) show(isOld() ? OLD : "The page has failed: " + event.message + ". Reload it.");
  }, true);
  window.addEventListener("unhandledrejection", function (event) {
    show("The page has failed: " + (event.reason && event.reason.message || event.reason) + ". Reload it.");
  });
  document.addEventListener("DOMContentLoaded", function () { if (isOld()) show(OLD); });
})();
