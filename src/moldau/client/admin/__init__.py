"""The admin client, AsyncAdmin on an event loop and Admin blocking, and the values it speaks of."""

from moldau.client.admin.acl_values import *
from moldau.client.admin.asynchronous import AsyncAdmin as AsyncAdmin
from moldau.client.admin.base import Listings as Listings
from moldau.client.admin.blocking import Admin as Admin
from moldau.client.admin.cluster_values import *
from moldau.client.admin.config_values import *
from moldau.client.admin.group_values import *
from moldau.client.admin.partition_values import *
from moldau.client.admin.security_values import *
from moldau.client.admin.topic_values import *
from moldau.client.admin.transaction_values import *
