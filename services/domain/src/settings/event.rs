//! Records of settings.

use serde::{Deserialize, Serialize};

use crate::record::records;

/// The thinking effort (SID-19): what of the model's own thinking is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Effort {
  /// No extra thinking; the default.
  #[default]
  Fast,
  Low,
  Medium,
  High,
}

/// Changes settings; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettingsGiven {
  /// The version that the change was made on.
  pub version: i64,
  /// An IANA zone name; `""` takes the zone back to "not yet known".
  pub time_zone: Option<String>,
  /// `en` or `zh-CN`; `""` follows the browser.
  pub language: Option<String>,
  pub concurrency: Option<i32>,
  /// A configured model's name; `""` follows the system default.
  pub model: Option<String>,
  pub effort: Option<Effort>,
  /// The agent's name.
  pub name: Option<String>,
  /// A built-in avatar's name (`builtin:<name>`) or an uploaded image's id (`file:<id>`).
  pub avatar: Option<String>,
}

/// The settings as they are from now on, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingsChanged {
  /// 1 for the settings that an agent starts with, then one more with every change.
  pub version: i64,
  pub time_zone: String,
  pub language: String,
  pub concurrency: i32,
  pub model: String,
  pub effort: Effort,
  pub name: String,
  pub avatar: String,
}

records! {
  /// Commands about settings.
  "settings" Input { SettingsGiven = 1 }
}

records! {
  /// Facts about settings.
  "settings" Event { SettingsChanged = 1 }
}
