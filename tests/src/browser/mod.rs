//! The page in a real browser: Chromium, driven as a person would.
//!
//! Things are found by their test ids, never by how they look; how they look is asked of the browser itself. The page must be built (`npm run build` in
//! services/web), since it is part of the program.

mod chromium;
mod looks;
mod offline;
mod signing;
mod talking;
mod tasks;
mod writing;

use chromium::Browser;
