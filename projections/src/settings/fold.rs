//! From a fact to the settings. Pure.

use pa_domain::settings::{self, SettingsChanged};
use pa_domain::{Event, Meta};

/// The settings from an event on.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingsRow {
  pub settings: SettingsChanged,
  pub changed: i64,
}

/// What a fact changes here.
pub(super) fn fold(meta: &Meta, event: &Event) -> Option<SettingsRow> {
  match event {
    Event::Settings(settings::Event::SettingsChanged(settings)) => Some(SettingsRow { settings: settings.clone(), changed: meta.ordinal }),
    Event::Account(_) | Event::Agent(_) | Event::Call(_) | Event::Conversation(_) | Event::Execution(_) | Event::Log(_) | Event::Task(_) | Event::Timer(_) => {
      None
    }
  }
}
