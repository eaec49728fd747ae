//! Which addresses pages may be fetched from: those of the public internet, and what the owner of the machine has allowed.
//!
//! The ranges are those of the registries of special-purpose addresses (IANA, RFC 6890). Of version 6 only what is given out as global unicast passes, so
//! whatever maps or translates to a version 4 address (`::ffff:0:0/96`, `64:ff9b::/96`, 6to4, Teredo) does not.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Version 4 ranges that are not of the public internet.
const SPECIAL_V4: [(Ipv4Addr, u8, &str); 16] = [
  (Ipv4Addr::UNSPECIFIED, 8, "this network"),
  (Ipv4Addr::new(10, 0, 0, 0), 8, "a private network"),
  (Ipv4Addr::new(100, 64, 0, 0), 10, "a provider's inner network"),
  (Ipv4Addr::new(127, 0, 0, 0), 8, "this machine"),
  // Public by its number, but on every machine of Azure the one that hosts it.
  (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud's own host"),
  (Ipv4Addr::new(169, 254, 0, 0), 16, "the local link"),
  (Ipv4Addr::new(172, 16, 0, 0), 12, "a private network"),
  (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved"),
  (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
  (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay to version 6"),
  (Ipv4Addr::new(192, 168, 0, 0), 16, "a private network"),
  (Ipv4Addr::new(198, 18, 0, 0), 15, "for measurements"),
  (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
  (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
  (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
  (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved, or broadcast"),
];
/// What of version 6 is given out as global unicast.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Parts of it that are not of the public internet.
const SPECIAL_V6: [(Ipv6Addr, u8, &str); 4] = [
  (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "for protocols"),
  (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
  (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "a mapped version 4 address"),
  (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
];

/// What an address is for, if it is not one of the public internet.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
  match address {
    IpAddr::V4(address) => SPECIAL_V4.iter().find(|(net, length, _)| has_v4(*net, *length, address)).map(|(_, _, what)| *what),
    IpAddr::V6(address) if !has_v6(GLOBAL_V6.0, GLOBAL_V6.1, address) => Some("not a public address"),
    IpAddr::V6(address) => SPECIAL_V6.iter().find(|(net, length, _)| has_v6(*net, *length, address)).map(|(_, _, what)| *what),
  }
}

fn has_v4(net: Ipv4Addr, length: u8, address: Ipv4Addr) -> bool {
  let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
  (net.to_bits() ^ address.to_bits()) & mask == 0
}

fn has_v6(net: Ipv6Addr, length: u8, address: Ipv6Addr) -> bool {
  let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
  (net.to_bits() ^ address.to_bits()) & mask == 0
}

/// An entry of the allow list that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is no host name, address or network such as 10.0.0.0/8")]
pub struct NotAnEntry {
  pub entry: String,
}

/// Exceptions: hosts whose addresses are not looked at, and networks that count as public.
#[derive(Clone, Debug, Default)]
pub struct Allow {
  hosts: BTreeSet<String>,
  nets: Vec<(IpAddr, u8)>,
}

impl Allow {
  /// Reads a list of host names, addresses and networks.
  ///
  /// # Errors
  /// [`NotAnEntry`].
  pub fn parse(entries: &[String]) -> Result<Self, NotAnEntry> {
    let mut allow = Self::default();
    for entry in entries {
      let text = entry.trim().trim_end_matches('.').to_ascii_lowercase();
      if let Some(net) = net(&text) {
        allow.nets.push(net);
      } else if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.') {
        allow.hosts.insert(text);
      } else {
        return Err(NotAnEntry { entry: entry.clone() });
      }
    }
    Ok(allow)
  }

  /// Why a host must not be reached at an address; `None` if it may.
  pub(super) fn refusal(&self, host: &str, address: IpAddr) -> Option<&'static str> {
    let special = special(address)?;
    let allowed = self.hosts.contains(host.trim_end_matches('.')) || self.nets.iter().any(|(net, length)| has(*net, *length, address));
    (!allowed).then_some(special)
  }
}

fn net(text: &str) -> Option<(IpAddr, u8)> {
  let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
  let address: IpAddr = address.parse().ok()?;
  let most = if address.is_ipv4() { 32 } else { 128 };
  let length = length.map_or(Some(most), |length| length.parse().ok())?;
  (length <= most).then_some((address, length))
}

fn has(net: IpAddr, length: u8, address: IpAddr) -> bool {
  match (net, address) {
    (IpAddr::V4(net), IpAddr::V4(address)) => has_v4(net, length, address),
    (IpAddr::V6(net), IpAddr::V6(address)) => has_v6(net, length, address),
    (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
  }
}

#[cfg(test)]
mod tests {
  use super::*;

  fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
  }

  #[test]
  fn only_public_addresses_pass() {
    for public in
      ["8.8.8.8", "1.1.1.1", "93.184.215.14", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "198.20.0.0", "223.255.255.255", "2606:4700::1111"]
    {
      assert_eq!(special(address(public)), None, "{public}");
    }
    for other in [
      "0.0.0.0",
      "10.1.2.3",
      "100.64.0.1",
      "100.127.255.255",
      "127.0.0.1",
      "127.8.8.8",
      "169.254.169.254",
      "172.16.0.1",
      "172.31.255.255",
      "192.0.0.8",
      "192.0.2.1",
      "192.88.99.1",
      "192.168.1.1",
      "198.18.0.1",
      "198.19.255.255",
      "198.51.100.1",
      "203.0.113.9",
      "224.0.0.1",
      "239.255.255.250",
      "240.0.0.1",
      "255.255.255.255",
    ] {
      assert!(special(address(other)).is_some(), "{other}");
    }
    for other in [
      "::",
      "::1",
      "::ffff:8.8.8.8",
      "::ffff:127.0.0.1",
      "::8.8.8.8",
      "64:ff9b::808:808",
      "64:ff9b:1::1",
      "100::1",
      "2001::1",
      "2001:10::1",
      "2001:20::1",
      "2001:db8::1",
      "2002:7f00:1::",
      "2002:808:808::",
      "3fff::1",
      "5f00::1",
      "fc00::1",
      "fd12:3456::1",
      "fe80::1",
      "fec0::1",
      "ff02::1",
      "4000::1",
    ] {
      assert!(special(address(other)).is_some(), "{other}");
    }
  }

  #[test]
  fn what_is_allowed_is_named() {
    let allow = Allow::parse(&["10.1.0.0/16".into(), "wiki.lan.".into(), " 127.0.0.1 ".into(), "fd00::/8".into()]).unwrap();
    for (host, at) in [("x", "10.1.2.3"), ("wiki.lan", "192.168.1.1"), ("wiki.lan.", "192.168.1.1"), ("x", "127.0.0.1"), ("x", "fd01::1"), ("x", "8.8.8.8")] {
      assert_eq!(allow.refusal(host, address(at)), None, "{host} {at}");
    }
    for (host, at) in [("x", "10.2.2.3"), ("evil.wiki.lan", "192.168.1.1"), ("x", "127.0.0.2"), ("x", "fc01::1"), ("x", "::ffff:10.1.2.3")] {
      assert!(allow.refusal(host, address(at)).is_some(), "{host} {at}");
    }
    for entry in ["", "10.0.0.0/33", "http://wiki", "a b", "10.0.0.0/x"] {
      assert_eq!(Allow::parse(&[entry.into()]).unwrap_err().entry, entry);
    }
  }
}
