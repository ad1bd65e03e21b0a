//! Where nodes are: `endpoint_snitch` and the files that some of them read.

use std::collections::BTreeMap;
use std::net::IpAddr;

use types::{Address, properties};

use crate::cloud::{self, Cloud};

/// The package of Cassandra's own.
const LOCATOR: &str = "org.apache.cassandra.locator.";
/// Where nothing is said.
const UNKNOWN: (&str, &str) = ("UNKNOWN_DC", "UNKNOWN_RACK");

/// Why a snitch or its file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnitchError {
    /// A class that is not served.
    #[error(
        "endpoint_snitch {0} is not supported; use SimpleSnitch, GossipingPropertyFileSnitch, \
         PropertyFileSnitch, RackInferringSnitch or a snitch of a cloud"
    )]
    Unknown(String),
    /// A snitch without its file.
    #[error("endpoint_snitch needs {0}, and it is missing; put it beside cassandra.yaml")]
    Missing(&'static str),
    /// `cassandra-rackdc.properties` does not say where this node is.
    #[error(
        "DC or rack not found in snitch properties, check your configuration in: cassandra-rackdc.properties"
    )]
    NoPlace,
    /// A key that is no address.
    #[error("cassandra-topology.properties: Unknown host {0}")]
    Host(String),
    /// Nothing is said of this node.
    #[error(
        "Snitch definitions at cassandra-topology.properties do not define a location for this node's broadcast address {0}, \
         nor does it provides a default"
    )]
    NoLocal(Address),
}

/// `cassandra-rackdc.properties`: where this node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RackDc {
    /// `dc`
    pub data_center: String,
    /// `rack`
    pub rack: String,
    /// `prefer_local`: is a node of this data centre spoken to at its own address rather than at
    /// the one it is known by?
    pub prefer_local: bool,
    /// `dc_suffix`: for snitches of clouds alone; no other appends it.
    pub suffix: String,
}

impl RackDc {
    /// The text of a file that says this place.
    pub fn text_of(data_center: &str, rack: &str) -> String {
        format!("dc={data_center}\nrack={rack}\n")
    }

    /// Name of the file.
    pub const FILE: &str = "cassandra-rackdc.properties";

    /// Reads the file's text.
    ///
    /// # Errors
    /// If it does not say where the node is.
    pub fn parse(text: &str) -> Result<Self, SnitchError> {
        let mut values = properties::parse(text);
        let mut place = |key| values.remove(key).ok_or(SnitchError::NoPlace);
        let (data_center, rack) =
            (place("dc")?.trim().to_owned(), place("rack")?.trim().to_owned());
        let prefer_local = values.get("prefer_local");
        Ok(Self {
            data_center,
            rack,
            prefer_local: prefer_local.is_some_and(|text| text.eq_ignore_ascii_case("true")),
            suffix: values.remove("dc_suffix").unwrap_or_default(),
        })
    }
}

/// `cassandra-topology.properties`: where each node is, as `address=dc:rack`, and those that are
/// not named, as `default=dc:rack`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    places: BTreeMap<Address, (String, String)>,
    default: Option<(String, String)>,
}

impl Topology {
    /// Name of the file.
    pub const FILE: &str = "cassandra-topology.properties";

    /// Reads the file's text. Addresses without a port have `port`.
    ///
    /// # Errors
    /// If a key is no address. Names of hosts are none: nothing here asks a resolver.
    pub fn parse(text: &str, port: u16) -> Result<Self, SnitchError> {
        let mut topology = Self::default();
        for (key, value) in properties::parse(text) {
            let place = place(&value);
            if key == "default" {
                topology.default = Some(place);
                continue;
            }
            let host = key.replace('/', "");
            let address = address(&host, port).ok_or(SnitchError::Host(host))?;
            topology.places.insert(address, place);
        }
        Ok(topology)
    }

    /// Refuses a file that says nothing of this node.
    ///
    /// # Errors
    /// If it says nothing.
    pub fn check(&self, local: Address) -> Result<(), SnitchError> {
        let is_known = self.default.is_some() || self.places.contains_key(&local);
        is_known.then_some(()).ok_or(SnitchError::NoLocal(local))
    }

    /// Where a node is, if it is said.
    pub fn place(&self, node: Address) -> Option<(&str, &str)> {
        let place = self.places.get(&node).or(self.default.as_ref())?;
        Some((&place.0, &place.1))
    }
}

/// `dc:rack`; anything else is the place `default`, as in Cassandra.
fn place(text: &str) -> (String, String) {
    // Java's `split` leaves out empty parts at the end
    let mut parts = text.trim_end_matches(':').split(':').map(|part| part.trim().to_owned());
    match (parts.next(), parts.next()) {
        (Some(center), Some(rack)) => (center, rack),
        _ => ("default".to_owned(), "default".to_owned()),
    }
}

/// An address with a port or without one.
fn address(text: &str, port: u16) -> Option<Address> {
    let with_port = text.parse::<std::net::SocketAddr>();
    let with_port = with_port.map(|address| Address::new(address.ip(), address.port()));
    let bare = text.trim_matches(['[', ']']);
    with_port.ok().or_else(|| bare.parse::<IpAddr>().ok().map(|ip| Address::new(ip, port)))
}

/// `endpoint_snitch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snitch {
    /// One data centre, one rack, whoever says what.
    Simple,
    /// This node from a file, others by what they say; by [`Topology`], if it is there, of who has
    /// said nothing.
    GossipingPropertyFile(RackDc, Option<Topology>),
    /// This node by its cloud, others by what they say.
    Cloud(RackDc),
    /// All from a file.
    PropertyFile(Topology),
    /// From second and third byte of the address.
    RackInferring,
}

impl Snitch {
    /// By name, with or without its package, and the texts of the files that are there. Of a cloud,
    /// `rack_dc` is what the cloud said, in the form of that file.
    ///
    /// # Errors
    /// If it is not served or its file is not there or wrong.
    pub fn new(
        name: &str,
        rack_dc: Option<&str>,
        topology: Option<&str>,
        local: Address,
    ) -> Result<Self, SnitchError> {
        let topology = topology.map(|text| {
            let topology = Topology::parse(text, local.port)?;
            topology.check(local).map(|()| topology)
        });
        match name.strip_prefix(LOCATOR).unwrap_or(name) {
            "SimpleSnitch" => Ok(Self::Simple),
            "GossipingPropertyFileSnitch" => {
                let rack_dc = RackDc::parse(rack_dc.ok_or(SnitchError::NoPlace)?)?;
                // Cassandra goes on without a file that it cannot use
                Ok(Self::GossipingPropertyFile(rack_dc, topology.and_then(Result::ok)))
            }
            "PropertyFileSnitch" => {
                Ok(Self::PropertyFile(topology.ok_or(SnitchError::Missing(Topology::FILE))??))
            }
            "RackInferringSnitch" => Ok(Self::RackInferring),
            name if Cloud::of_snitch(name).is_some() => {
                Ok(Self::Cloud(RackDc::parse(rack_dc.ok_or(SnitchError::NoPlace)?)?))
            }
            _ => Err(SnitchError::Unknown(name.to_owned())),
        }
    }

    /// Data centre and rack of a node. `said` is what it says itself, or last said.
    pub fn place(
        &self,
        node: Address,
        is_local: bool,
        said: Option<(&str, &str)>,
    ) -> (String, String) {
        let owned = |(center, rack): (&str, &str)| (center.to_owned(), rack.to_owned());
        match self {
            Self::Simple => owned(("datacenter1", "rack1")),
            Self::GossipingPropertyFile(here, _) if is_local => {
                owned((&here.data_center, &here.rack))
            }
            Self::GossipingPropertyFile(_, topology) => {
                let told = || topology.as_ref().and_then(|topology| topology.place(node));
                owned(said.or_else(told).unwrap_or(UNKNOWN))
            }
            Self::Cloud(here) if is_local => owned((&here.data_center, &here.rack)),
            Self::Cloud(_) => owned(said.unwrap_or(cloud::UNKNOWN)),
            Self::PropertyFile(topology) => owned(topology.place(node).unwrap_or(UNKNOWN)),
            Self::RackInferring => {
                let byte = |at: usize| match node.ip {
                    IpAddr::V4(four) => four.octets()[at],
                    IpAddr::V6(six) => six.octets()[at],
                };
                (byte(1).to_string(), byte(2).to_string())
            }
        }
    }

    /// Does it know of racks and data centres, by which nodes are near or far?
    pub fn by_place(&self) -> bool {
        !matches!(self, Self::Simple)
    }
}
