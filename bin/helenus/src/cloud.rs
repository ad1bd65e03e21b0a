//! Asks the cloud of a machine where it is, before the node starts, if `endpoint_snitch` says so.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use config::{Config, Host};
use env::real::{self, RealOptions, StartError};
use node::Discovered;
use ring::{Cloud, MetadataService};

/// Why a cloud did not say it.
struct Silent(String);

impl From<StartError> for Silent {
    fn from(error: StartError) -> Self {
        Self(error.to_string())
    }
}

/// Completes the configuration by what the cloud says: data centre, rack, and the address by which
/// others know the node.
///
/// # Errors
/// If the cloud does not say it.
pub fn discover(config: &mut Config) -> Result<(), String> {
    let Some(cloud) = Cloud::of_snitch(&config.snitch) else { return Ok(()) };
    let named = |why: String| format!("endpoint_snitch {}: {why}", config.snitch);
    let service = MetadataService::new(cloud, config.beside.rack_dc.as_deref()).map_err(named)?;
    let host = &service.host;
    let addresses = real::addresses_of(host);
    let unknown = |why: &dyn std::fmt::Display| {
        named(format!("cannot find the address of the metadata service {host}: {why}"))
    };
    let addresses = addresses.map_err(|error| unknown(&error))?;
    let ip = addresses.first().ok_or_else(|| unknown(&"it has none"))?;
    let address = SocketAddr::new(*ip, service.port);
    let Discovered { rack_dc, public_address } = ask(cloud, service, address).map_err(named)?;
    config.beside.rack_dc = Some(rack_dc);
    if let Some(public) = public_address {
        config.broadcast_address = Host::Ip(public);
        if !config.is_set("broadcast_rpc_address") {
            config.broadcast_rpc_address = Host::Ip(public);
        }
    }
    Ok(())
}

/// A shard of its own asks, and ends.
fn ask(cloud: Cloud, service: MetadataService, address: SocketAddr) -> Result<Discovered, String> {
    let found = Arc::new(Mutex::new(None));
    let (told, service) = (Arc::clone(&found), Arc::new(service));
    let options = RealOptions { signals: false, ..RealOptions::default() };
    let asked = real::run(options, move |env, _mesh: env::Mesh<()>| {
        let (told, service) = (Arc::clone(&told), Arc::clone(&service));
        async move {
            let answer = node::discover(&env, cloud, &service, address).await.map_err(Silent)?;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            Ok::<(), Silent>(())
        }
    });
    asked.map_err(|Silent(why)| why)?;
    let answer = found.lock().unwrap_or_else(PoisonError::into_inner).take();
    answer.ok_or_else(|| "the metadata service was not asked".to_owned())
}
