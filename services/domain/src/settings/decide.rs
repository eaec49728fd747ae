//! What may be set, and what an agent starts with.

use super::{Effort, Input, SettingsChanged, SettingsGiven};
use crate::codes::reason;
use crate::event::Event;
use crate::limits::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, NAME_CHARS_MAX, REFERENCE_CHARS_MAX};
use crate::meta::{Meta, Origin};
use crate::settle::{no_change, refused};
use crate::state::Root;
use crate::task;
use crate::text;

/// The languages that the product speaks (D24); empty follows the browser.
const LANGUAGES: [&str; 3] = ["", "en", "zh-CN"];

/// The settings of a new agent. Its zone and language aren't known yet: the page records the zone on first use (RUN-41) and the language follows the browser.
pub(crate) fn at_start() -> SettingsChanged {
  SettingsChanged {
    version: 1,
    time_zone: String::new(),
    language: String::new(),
    concurrency: CONCURRENCY_DEFAULT,
    model: String::new(),
    effort: Effort::Fast,
    name: "Hugo".to_owned(),
    avatar: "builtin:hugo".to_owned(),
  }
}

pub(crate) fn decide(root: &Root, meta: &Meta, input: &Input) -> Vec<Event> {
  match input {
    Input::SettingsGiven(given) => {
      let changed = change(root, meta, given);
      // More tasks may run at once: those that waited longest have their turn.
      let turns = match &changed {
        Event::Settings(super::Event::SettingsChanged(changed)) => task::turns_at(root, changed.concurrency),
        Event::Account(_)
        | Event::Agent(_)
        | Event::Call(_)
        | Event::Conversation(_)
        | Event::Execution(_)
        | Event::Log(_)
        | Event::Task(_)
        | Event::Timer(_) => Vec::new(),
      };
      [changed].into_iter().chain(turns).collect()
    }
  }
}

fn change(root: &Root, meta: &Meta, given: &SettingsGiven) -> Event {
  if meta.origin != Origin::Owner {
    return refused(reason::NOT_ALLOWED);
  }
  let Some(now) = &root.settings else { return refused(reason::NOT_FOUND) };
  if given.version != now.version {
    return refused(reason::STATE_CHANGED);
  }
  match with(now, given) {
    None => refused(reason::VALUE_INVALID),
    Some(wanted) if wanted == *now => no_change(reason::ALREADY_DONE),
    Some(wanted) => SettingsChanged { version: now.version + 1, ..wanted }.into(),
  }
}

/// The settings with what is given, or `None` if a value can't be used.
fn with(now: &SettingsChanged, given: &SettingsGiven) -> Option<SettingsChanged> {
  Some(SettingsChanged {
    version: now.version,
    time_zone: given_or(given.time_zone.as_deref(), &now.time_zone, |zone| {
      (zone.is_empty() || zone.parse::<chrono_tz::Tz>().is_ok()).then(|| zone.to_owned())
    })?,
    language: given_or(given.language.as_deref(), &now.language, |language| LANGUAGES.contains(&language).then(|| language.to_owned()))?,
    concurrency: Some(given.concurrency.unwrap_or(now.concurrency)).filter(|concurrency| (1..=CONCURRENCY_MAX).contains(concurrency))?,
    model: given_or(given.model.as_deref(), &now.model, |model| if model.is_empty() { Some(String::new()) } else { text::name(model, REFERENCE_CHARS_MAX) })?,
    effort: given.effort.unwrap_or(now.effort),
    name: given_or(given.name.as_deref(), &now.name, |name| text::name(name, NAME_CHARS_MAX))?,
    avatar: given_or(given.avatar.as_deref(), &now.avatar, |avatar| text::name(avatar, REFERENCE_CHARS_MAX).filter(|avatar| avatar_is_named(avatar)))?,
  })
}

fn given_or(given: Option<&str>, now: &str, usable: impl Fn(&str) -> Option<String>) -> Option<String> {
  given.map_or_else(|| Some(now.to_owned()), usable)
}

fn avatar_is_named(avatar: &str) -> bool {
  let reference = avatar.strip_prefix("builtin:").or_else(|| avatar.strip_prefix("file:"));
  reference.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'))
}
