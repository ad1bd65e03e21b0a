//! From hosts as they are configured to addresses. Who asks the resolver and the kernel is not
//! known here.

use std::net::IpAddr;

use crate::config::Config;
use crate::section::Host;

/// Whom names and interfaces are asked of.
pub trait Network {
    /// The address of a host; none: nobody knows it.
    fn of_name(&self, name: &str) -> Option<IpAddr>;

    /// The addresses of an interface, in their order; none: there is no such interface.
    fn of_interface(&self, name: &str) -> Option<Vec<IpAddr>>;
}

impl Config {
    /// Finds the addresses of what is configured by name or by interface. Seeds that nobody knows
    /// are left out with a warning, as in Cassandra, as long as others are left.
    ///
    /// # Errors
    /// In Cassandra's words, if there is none.
    pub fn resolve(&mut self, network: &dyn Network) -> Result<(), String> {
        let hosts = [
            ("listen", &mut self.listen_address),
            ("broadcast", &mut self.broadcast_address),
            ("rpc", &mut self.rpc_address),
            ("broadcast_rpc", &mut self.broadcast_rpc_address),
            ("metrics", &mut self.metrics_address),
        ];
        for (of, host) in hosts {
            *host = Host::Ip(address(of, host, network)?);
        }
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        for seed in std::mem::take(&mut self.seeds) {
            match seed_address(&seed, network) {
                Some(address) => found.push(address),
                None => unknown.push(seed),
            }
        }
        if found.is_empty() {
            found = unknown;
        } else if !unknown.is_empty() {
            let unknown = unknown.join(", ");
            self.given
                .warnings
                .push(format!("Seed provider couldn't lookup host {unknown}: started without it"));
        }
        self.seeds = found;
        Ok(())
    }
}

fn address(of: &str, host: &Host, network: &dyn Network) -> Result<IpAddr, String> {
    match host {
        Host::Ip(ip) => Ok(*ip),
        Host::Name(name) => network.of_name(name).ok_or_else(|| match of {
            "rpc" => format!("Unknown host in rpc_address {name}"),
            _ => format!("Unknown {of}_address '{name}'"),
        }),
        Host::Interface { name, prefers_ipv6 } => {
            // `broadcast_address` has the address of `listen_interface`
            let key = format!("{}_interface", of.trim_start_matches("broadcast_"));
            let key = key.replace("broadcast", "listen");
            let addresses = network
                .of_interface(name)
                .ok_or_else(|| format!("Configured {key} \"{name}\" could not be found"))?;
            let preferred = addresses.iter().find(|ip| ip.is_ipv6() == *prefers_ipv6);
            preferred.or(addresses.first()).copied().ok_or_else(|| {
                format!("Configured {key} \"{name}\" was found, but had no addresses")
            })
        }
    }
}

/// A seed with its host as an address; its port stays.
fn seed_address(seed: &str, network: &dyn Network) -> Option<String> {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let bare = |text: &str| text.trim_matches(['[', ']']).to_owned();
    if is_address(&bare(seed)) || seed.parse::<std::net::SocketAddr>().is_ok() {
        return Some(seed.to_owned());
    }
    let (host, port) = match seed.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (seed, None),
    };
    let ip = network.of_name(host)?;
    Some(match (ip, port) {
        (ip, None) => ip.to_string(),
        (IpAddr::V4(ip), Some(port)) => format!("{ip}:{port}"),
        (IpAddr::V6(ip), Some(port)) => format!("[{ip}]:{port}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    impl Network for Known {
        fn of_name(&self, name: &str) -> Option<IpAddr> {
            (name == "node-one").then(|| IpAddr::from([10, 0, 0, 1]))
        }

        fn of_interface(&self, name: &str) -> Option<Vec<IpAddr>> {
            match name {
                "eth0" => Some(vec!["fe80::1".parse().unwrap(), [10, 0, 0, 2].into()]),
                "eth1" => Some(Vec::new()),
                _ => None,
            }
        }
    }

    fn resolved(yaml: &str) -> Result<Config, String> {
        let mut config = Config::from_yaml(yaml).map_err(|error| error.to_string())?;
        config.resolve(&Known).map(|()| config)
    }

    fn ip(text: &str) -> Host {
        Host::Ip(text.parse().unwrap())
    }

    #[test]
    fn interfaces_are_addresses_of_the_wanted_kind() {
        let config = resolved("listen_interface: eth0\nrpc_interface: eth0").unwrap();
        assert_eq!((config.listen_address, config.rpc_address), (ip("10.0.0.2"), ip("10.0.0.2")));
        assert_eq!(config.broadcast_address, ip("10.0.0.2"));
        let six = "listen_interface: eth0\nlisten_interface_prefer_ipv6: true";
        assert_eq!(resolved(six).unwrap().listen_address, ip("fe80::1"));
        for (yaml, why) in [
            ("listen_interface: eth7", "Configured listen_interface \"eth7\" could not be found"),
            (
                "rpc_interface: eth1",
                "Configured rpc_interface \"eth1\" was found, but had no addresses",
            ),
            ("listen_address: node-two", "Unknown listen_address 'node-two'"),
            ("rpc_address: node-two", "Unknown host in rpc_address node-two"),
        ] {
            assert_eq!(resolved(yaml).unwrap_err(), why);
        }
        let both = resolved("listen_interface: eth0\nlisten_address: 10.0.0.1").unwrap_err();
        assert!(both.contains("Set listen_address OR listen_interface, not both"), "{both}");
    }

    #[test]
    fn an_override_of_the_one_takes_the_place_of_the_other() {
        let mut config = Config::from_yaml("listen_interface: eth0").unwrap();
        config.set("listen_address=10.0.0.9").unwrap();
        assert_eq!(config.listen_address, ip("10.0.0.9"));
        let mut config = Config::default();
        config.set("rpc_interface=eth0").unwrap();
        config.resolve(&Known).unwrap();
        assert_eq!(config.rpc_address, ip("10.0.0.2"));
    }

    #[test]
    fn names_are_looked_up_and_unknown_seeds_left_out() {
        let seeds = |text: &str| {
            let yaml = format!(
                "listen_address: node-one\nseed_provider: {{ class_name: SimpleSeedProvider, \
                 parameters: {{ seeds: '{text}' }} }}"
            );
            let config = resolved(&yaml).unwrap();
            assert_eq!(config.listen_address, ip("10.0.0.1"));
            (config.seeds, config.given.warnings.len())
        };
        let of = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(seeds("node-one:7001,node-two"), (of(&["10.0.0.1:7001"]), 1));
        let plain = "10.0.0.3,[::1]:9,fe80::1,node-one";
        assert_eq!(seeds(plain), (of(&["10.0.0.3", "[::1]:9", "fe80::1", "10.0.0.1"]), 0));
        assert_eq!(seeds("node-two"), (of(&["node-two"]), 0));
    }
}
