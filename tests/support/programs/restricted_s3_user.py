"""Make a user of moto who has only some rights, and let moto check rights from now on; print the user's keys.

usage: restricted_s3_user.py URL ACTION...
"""

import json
import sys
import urllib.request

import boto3

url, *actions = sys.argv[1:]
iam = boto3.client(
    "iam", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
)
iam.create_user(UserName="restricted")
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
iam.put_user_policy(UserName="restricted", PolicyName="own", PolicyDocument=json.dumps(policy))
key = iam.create_access_key(UserName="restricted")["AccessKey"]
request = urllib.request.Request(f"{url}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"}, method="POST")
urllib.request.urlopen(request, timeout=30).close()
print(json.dumps({"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}))
